//! `ichor certs metrics` and `ichor certs watch`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use serde_json::Value;
use talos_sim::Reach;

use super::command::one_control_plane;
use crate::cli::program::Lab;

/// A run of the program that goes on until it is dropped.
struct Running(Child);

impl Running {
    fn start(lab: &Lab, args: &[&str]) -> Self {
        let mut command = lab.home.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expiries_are_absolute_times_of_what_is_served() {
    let lab = Lab::start(one_control_plane()).await;
    let report = lab.json(&["certs", "check"]);
    let end: Timestamp = report["servers"][0]["certificate"]["notAfter"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let ran = lab.run(&["certs", "metrics", "--expect", "apid=lb.example"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = |start: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{start}: {ran:?}"))
            .to_owned()
    };
    let node = &lab.nodes[0];
    let spot = format!(r#"{{node="{node}",place="apid""#);
    let served = line(&format!(
        "talos_certificate_not_after_timestamp_seconds{spot}"
    ));
    assert!(
        served.ends_with(&format!(" {}.0", end.as_second())),
        "{served}"
    );
    let found = line(&format!("talos_certificate_findings{spot}"));
    assert!(found.ends_with(r#"code="name-missing"} 1.0"#), "{found}");
    assert_eq!(
        line("# TYPE talos_certificate_findings"),
        "# TYPE talos_certificate_findings gauge"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_file_is_written_whole_or_its_path_is_named() {
    let lab = Lab::start(one_control_plane()).await;
    let file = lab.home.path().join("collected/certs.prom");
    let path = file.to_str().unwrap();
    let ran = lab.run(&["certs", "metrics", "--textfile", path]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");

    let folder = lab.home.path().to_str().unwrap();
    let ran = lab.run(&["certs", "metrics", "--textfile", folder]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains(folder), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_until_the_run_ends() {
    let lab = Lab::start(one_control_plane()).await;
    let args = [
        "certs",
        "metrics",
        "--listen",
        "127.0.0.1:0",
        "--interval",
        "1h",
    ];
    let mut running = Running::start(&lab, &args);
    let mut said = BufReader::new(running.0.stderr.take().unwrap()).lines();
    let url = said.find_map(|line| {
        let line = line.unwrap();
        Some(line.split_once("served at ")?.1.to_owned())
    });
    let url = url.unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let ask = async |method: Method, url: &str| {
        let request = Request::builder().method(method).uri(url);
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = client.request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head, String::from_utf8(body.to_vec()).unwrap())
    };
    let (head, text) = loop {
        let (head, text) = ask(Method::GET, &url).await;
        if head.status != StatusCode::SERVICE_UNAVAILABLE {
            break (head, text);
        }
    };
    assert_eq!(head.status, StatusCode::OK);
    let kind = head.headers["content-type"].to_str().unwrap();
    assert!(
        kind.starts_with("application/openmetrics-text; version=1.0.0"),
        "{kind}"
    );
    assert!(text.contains("talos_certificate_not_after_timestamp_seconds{"));
    let (head, _) = ask(Method::POST, &url).await;
    assert_eq!(head.status, StatusCode::METHOD_NOT_ALLOWED);
    let (head, _) = ask(Method::GET, &url.replace("/metrics", "/")).await;
    assert_eq!(head.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_what_is_there_and_then_what_changes() {
    let lab = Lab::start(one_control_plane()).await;
    let args = ["certs", "watch", "--interval", "20ms", "-o", "ndjson"];
    let mut running = Running::start(&lab, &args);
    let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut next = |event: &str, place: &str| {
        let wanted = |seen: &Value| seen["event"] == event && seen["place"] == place;
        tokio::task::block_in_place(|| events.find(wanted)).unwrap()
    };
    let first = next("appeared", "apid");
    assert_eq!(first["node"], *lab.nodes[0]);

    let patch = r#"{"machine":{"certSANs":["lb.example"]}}"#;
    let ran = lab.run(&["patch", "mc", "-n", &lab.nodes[0], "--patch", patch]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let replaced = next("replaced", "apid");
    assert_eq!(
        replaced["before"]["fingerprint"],
        first["certificate"]["fingerprint"]
    );

    lab.cluster.nodes()[0].faults().set_reach(Reach::Refusing);
    next("failed", "apid");
    lab.cluster.nodes()[0].faults().set_reach(Reach::Up);
    next("recovered", "apid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_with_credentials_that_were_renewed_and_without_a_file_that_cannot_be_written()
 {
    let lab = Lab::start(one_control_plane()).await;
    // A file has no files in it.
    let nowhere = lab.home.path().join(".talos/config/certs.prom");
    let nowhere = nowhere.to_str().unwrap();
    let args = [
        "certs",
        "watch",
        "--interval",
        "20ms",
        "--textfile",
        nowhere,
        "-o",
        "ndjson",
    ];
    let mut running = Running::start(&lab, &args);
    let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut next = |event: &str| {
        let wanted = |seen: &Value| {
            let place = seen["place"].as_str().unwrap_or_default();
            seen["event"] == event && place.starts_with("talosconfig context")
        };
        tokio::task::block_in_place(|| events.find(wanted)).unwrap()
    };
    let first = next("appeared");
    let ran = lab.run(&["certs", "renew", "talosconfig", "-n", &lab.nodes[0]]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let replaced = next("replaced");
    assert_eq!(
        replaced["before"]["fingerprint"],
        first["certificate"]["fingerprint"]
    );
}
