{{/*
Name of the chart, which is the label app.kubernetes.io/name.
*/}}
{{- define "CHART.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
Prefix of the names of all objects: the release, with the chart unless the release has its name. It is short enough for
the longest name of a Service; a longer one ends in a hash, so that two releases differ. As the name of a Service, it has no
dot and begins with a letter.
*/}}
{{- define "CHART.fullname" -}}
{{- $chart := include "CHART.name" . }}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) }}
{{- $name := .Values.fullnameOverride | default $release | replace "." "-" }}
{{- if regexMatch "^[0-9]" $name }}
{{- $name = printf "r%s" $name }}
{{- end }}
{{- if gt (len $name) LIMIT }}
{{- printf "%s-%s" (trunc CUT $name | trimSuffix "-") (sha256sum $name | trunc 8) }}
{{- else }}
{{- $name | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/*
Labels of all objects.
*/}}
{{- define "CHART.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "CHART.selectorLabels" . }}
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | replace "+" "_" | trunc 63 | quote }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Labels by which Services and others select the pods of this release, and of no other.
*/}}
{{- define "CHART.selectorLabels" -}}
app.kubernetes.io/name: {{ include "CHART.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/*
Name of the manager's service account.
*/}}
{{- define "CHART.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (printf "%s-ACCOUNT" (include "CHART.fullname" .)) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{/*
Image of the manager.
*/}}
{{- define "CHART.image" -}}
{{- $tag := .Values.image.tag }}
{{- if not (or $tag .Values.image.digest) }}
{{- $tag = .Chart.AppVersion }}
{{- end }}
{{- .Values.image.repository }}
{{- with $tag }}:{{ . }}{{ end }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}
