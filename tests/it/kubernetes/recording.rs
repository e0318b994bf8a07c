//! Recorded events, and a form in which they compare with simulated ones.

use std::collections::BTreeMap;

/// One event, comparable between a recording and the simulator.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) at: String,
    pub(super) event: String,
    pub(super) what: String,
    pub(super) detail: String,
}

/// Versions of the component configs and of the config files before the upgrade.
pub(super) type Start = (i32, &'static str);

/// Those of a fresh cluster.
pub(super) const FRESH: Start = (1, "1111");
/// Those that the recorded cluster had come to.
pub(super) const RECORDED: Start = (2, "1122");

/// Reads the recorded rows of one step.
pub(super) fn recorded(step: &str) -> Vec<Row> {
    include_str!("../../data/upgrade-order.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let (kind, name) = columns[4].split_once('/').unwrap_or((columns[4], ""));
            let what = match (columns[2], name) {
                ("resource", name) => format!("{}/{name}", kind.split('.').next().unwrap()),
                ("node", _) => "node".to_owned(),
                _ => kind.to_owned(),
            };
            (columns[1] == step).then(|| Row {
                at: columns[0].to_owned(),
                event: columns[3].to_owned(),
                what,
                detail: columns[5].to_owned(),
            })
        })
        .collect()
}

/// Brings rows into a form in which the speed and the load of the machine do not show.
pub(super) fn comparable(rows: Vec<Row>, start: Start) -> Vec<String> {
    let mut new_pods: Vec<String> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    // The configuration is the cause; the recorder's watches were not in step with each other.
    let (configs, others): (Vec<Row>, Vec<Row>) = rows
        .into_iter()
        .partition(|row| row.what.starts_with("MachineConfigs"));
    for row in configs.into_iter().chain(together(others)) {
        let field = |name: &str| {
            let mut parts = row
                .detail
                .split(' ')
                .filter_map(|part| part.split_once('='));
            parts
                .find(|(found, _)| *found == name)
                .map(|(_, value)| value.to_owned())
        };
        let line = if let Some(uid) = field("uid") {
            let is_creation = row.event == "ADDED" && field("phase").as_deref() == Some("Pending");
            if is_creation {
                new_pods.push(uid.clone());
            }
            let is_new = new_pods.contains(&uid);
            let runs = match field("runs") {
                Some(image) if image.ends_with("1.36.4") => "old image",
                Some(image) if image.ends_with("1.36.3") => "new image",
                _ => "nothing",
            };
            let ready = field("Ready").unwrap_or_default();
            let deleting = field("deleting").as_deref() == Some("yes");
            let state = field("state").unwrap_or_default();
            match (is_new, row.event.as_str()) {
                // A watch that starts again shows what is there.
                (false, "ADDED") => continue,
                // The machine was so slow that pods failed now and then.
                (false, "MODIFIED") if !deleting && runs == "old image" => continue,
                (true, "MODIFIED") if state == "waiting" => continue,
                (false, "MODIFIED") if !deleting => {
                    format!("MODIFIED old {} {runs} Ready={ready}", row.what)
                }
                (false, event) => format!("{event} old {} deleting", row.what),
                (true, event) => {
                    let versions =
                        versions(start, field("config-version"), field("config-file-version"));
                    format!(
                        "{event} new {} {versions} {runs} {state} Ready={ready}",
                        row.what
                    )
                }
            }
        } else if row.what.starts_with("StaticPods/") {
            let versions = versions(start, field("config-version"), field("config-file-version"));
            format!("{} {} {versions}", row.event, row.what)
        } else if row.what.starts_with("Services/") {
            // Whether health is unknown at first differed from time to time.
            let healthy = field("healthy").unwrap();
            if row.event == "UPDATED" && healthy == "false" {
                continue;
            }
            format!("{} {} healthy={healthy}", row.event, row.what)
        } else if row.what == "node" {
            format!("{} node {}", row.event, row.detail)
        } else {
            format!("{} {}", row.event, row.what)
        };
        // A slow container fails and starts again; only what is new about it counts.
        if last.insert(row.what.clone(), line.clone()).as_ref() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A removed resource does not say when it was removed: its row goes before the next of its type.
pub(super) fn together(rows: Vec<Row>) -> Vec<Row> {
    let (destroyed, mut others): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.event == "DESTROYED");
    let kind = |row: &Row| row.what.split('/').next().unwrap().to_owned();
    for row in destroyed.into_iter().rev() {
        let next = others
            .iter()
            .position(|other| kind(other) == kind(&row) && other.event != "UPDATED");
        others.insert(next.unwrap_or(others.len()), row);
    }
    others
}

/// Versions relative to those before the upgrade, as counters of different age begin elsewhere.
fn versions(
    (config, files): Start,
    new_config: Option<String>,
    new_files: Option<String>,
) -> String {
    let new_config: i32 = new_config.unwrap().parse().unwrap();
    let moved: Vec<u8> = match new_files {
        Some(new) if new != "None" => new
            .bytes()
            .zip(files.bytes())
            .map(|(new, old)| new - old)
            .collect(),
        _ => Vec::new(),
    };
    format!("config+{} files+{moved:?}", new_config - config)
}
