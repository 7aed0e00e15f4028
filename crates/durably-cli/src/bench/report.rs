//! What was measured: one line each, for people or for programs.

use serde::Serialize;

/// One metric of one workload: the values of all measured passes, and those of the bare loop.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) workload: &'static str,
    pub(super) style: Option<&'static str>,
    pub(super) store: &'static str,
    pub(super) metric: &'static str,
    pub(super) values: Vec<f64>,
    /// Empty where there is no bare loop.
    pub(super) limits: Vec<f64>,
}

/// The JSON object of a line.
#[derive(Serialize)]
struct Line<'a> {
    workload: &'a str,
    style: Option<&'a str>,
    store: &'a str,
    metric: &'a str,
    value: f64,
    limit: Option<f64>,
    ratio: Option<f64>,
    runs: usize,
    min: f64,
    max: f64,
}

impl Measured {
    /// The median of all passes.
    pub(super) fn value(&self) -> f64 {
        median(&self.values)
    }

    /// The same of the bare loop.
    pub(super) fn limit(&self) -> Option<f64> {
        (!self.limits.is_empty()).then(|| median(&self.limits))
    }

    fn line(&self) -> Line<'_> {
        let (value, limit) = (self.value(), self.limit());
        Line {
            workload: self.workload,
            style: self.style,
            store: self.store,
            metric: self.metric,
            value: rounded(value),
            limit: limit.map(rounded),
            ratio: limit.filter(|limit| *limit > 0.0).map(|limit| rounded(value / limit)),
            runs: self.values.len(),
            min: rounded(self.values.iter().copied().fold(f64::INFINITY, f64::min)),
            max: rounded(self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        }
    }

    /// One JSON object.
    pub(super) fn to_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(&self.line())?)
    }
}

/// A table for people.
pub(super) fn table(measured: &[Measured]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header([
        "workload", "style", "store", "metric", "value", "limit", "ratio", "runs", "min", "max",
    ]);
    for column in 4..10 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    for measured in measured {
        let line = measured.line();
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), shown);
        table.add_row([
            line.workload.to_owned(),
            line.style.unwrap_or("–").to_owned(),
            line.store.to_owned(),
            line.metric.to_owned(),
            shown(line.value),
            or_dash(line.limit),
            or_dash(line.ratio),
            line.runs.to_string(),
            shown(line.min),
            shown(line.max),
        ]);
    }
    table.to_string()
}

/// As many digits as mean something.
pub(super) fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// The middle one; of an even number, the mean of the two in the middle.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
    }
}

/// The smallest value that so many per cent do not exceed.
pub(super) fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles_are_of_sorted_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&hundred, 50.0), 50.0);
        assert_eq!(percentile(&hundred, 99.0), 99.0);
        assert_eq!(percentile(&[7.0], 99.0), 7.0);
    }

    #[test]
    fn a_line_without_a_limit_says_so() {
        let mut measured = Measured {
            workload: "B2",
            style: None,
            store: "memory",
            metric: "steps_per_s",
            values: vec![10.0, 30.0, 20.0],
            limits: vec![],
        };
        let line: serde_json::Value =
            serde_json::from_str(&measured.to_json().unwrap()).expect("JSON");
        assert_eq!(line["limit"], serde_json::Value::Null);
        assert_eq!(line["ratio"], serde_json::Value::Null);
        measured.limits = vec![40.0];
        let line: serde_json::Value =
            serde_json::from_str(&measured.to_json().unwrap()).expect("JSON");
        assert_eq!(
            line,
            serde_json::json!({
                "workload": "B2", "style": null, "store": "memory", "metric": "steps_per_s",
                "value": 20.0, "limit": 40.0, "ratio": 0.5, "runs": 3, "min": 10.0, "max": 30.0,
            })
        );
    }
}
