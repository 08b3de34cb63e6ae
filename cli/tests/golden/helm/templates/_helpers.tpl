{{/*
Name of the chart, which is the label app.kubernetes.io/name.
*/}}
{{- define "shop.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
Prefix of the names of all objects: the release, with the chart unless the release has its name. It is short enough for
the longest name of a Service; a longer one ends in a hash, so that two releases differ. As the name of a Service, it has no
dot and begins with a letter.
*/}}
{{- define "shop.fullname" -}}
{{- $chart := include "shop.name" . }}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) }}
{{- $name := .Values.fullnameOverride | default $release | replace "." "-" }}
{{- if regexMatch "^[0-9]" $name }}
{{- $name = printf "r%s" $name }}
{{- end }}
{{- if gt (len $name) 28 }}
{{- printf "%s-%s" (trunc 19 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}
{{- else }}
{{- $name | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/*
Labels of all objects.
*/}}
{{- define "shop.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "shop.selectorLabels" . }}
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
{{- define "shop.selectorLabels" -}}
app.kubernetes.io/name: {{ include "shop.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/*
Name of the manager's service account.
*/}}
{{- define "shop.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (printf "%s-controller-manager" (include "shop.fullname" .)) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{/*
Image of the manager.
*/}}
{{- define "shop.image" -}}
{{- $tag := .Values.image.tag }}
{{- if not (or $tag .Values.image.digest) }}
{{- $tag = .Chart.AppVersion }}
{{- end }}
{{- .Values.image.repository }}
{{- with $tag }}:{{ . }}{{ end }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}
