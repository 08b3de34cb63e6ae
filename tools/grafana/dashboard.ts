// The dashboards that `rbuilder grafana` generates, in terms of the types that Grafana publishes.
// `cargo xtask grafana` writes dashboards as literals of this type, so that the compiler reports
// fields that Grafana does not know.
import type {
  Dashboard as GrafanaDashboard,
  FieldConfig as GrafanaFieldConfig,
  GraphFieldConfig,
  Panel,
  RowPanel,
  VariableModel,
} from "@grafana/schema";
import type { Options } from "@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts";

// A type in JSON, where enum members are represented by their values.
type Json<T> = T extends string
  ? `${T}`
  : T extends (infer Item)[]
    ? Json<Item>[]
    : T extends object
      ? { [Key in keyof T]: Json<T[Key]> }
      : T;

// This package of Grafana contains no type for Prometheus queries.
interface PrometheusQuery {
  datasource: { type: "prometheus"; uid: string };
  editorMode: "code";
  expr: string;
  legendFormat: string;
  range: boolean;
  refId: string;
}

type TimeSeries = Omit<Panel, "type" | "options" | "fieldConfig" | "targets"> & {
  type: "timeseries";
  options: Options;
  fieldConfig: {
    defaults: Omit<GrafanaFieldConfig, "custom"> & { custom: GraphFieldConfig };
    overrides: [];
  };
};

type Query = Omit<VariableModel, "query" | "current"> & {
  // Grafana's own dashboards contain these fields, but its variable types lack them.
  definition?: string;
  label?: string;
  query: string | { query: string; refId: string };
  current: { selected?: boolean; text?: string | string[]; value?: string | string[] };
};

export type Dashboard = Json<Omit<GrafanaDashboard, "panels" | "templating">> & {
  panels: ((Json<TimeSeries> & { targets: PrometheusQuery[] }) | Json<RowPanel>)[];
  templating: { list: Json<Query>[] };
};
