//! A simulated cluster with both ways into it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use talos_client::Client;
use talos_config::talosconfig::TalosConfig;
use talos_kube::{Kubernetes, Patience, reach_through};
use talos_sim::{Node, Options};
use talos_upgrade::{
    Cluster, Error, Event, Facts, Plan, Report, Request, RunOptions, Stop, Timing,
};
use tokio::net::TcpSocket;

pub(super) const NEW: &str = "1.34.0";

/// A running cluster and the ways into it.
pub(super) struct Lab {
    pub(super) sim: talos_sim::Cluster,
    pub(super) client: Client,
    pub(super) kubernetes: Kubernetes,
    pub(super) stop: Stop,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Lab {
    pub(super) async fn start(options: Options) -> Self {
        let sim = talos_sim::Cluster::start(options).await.unwrap();
        let client = client(&sim);
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let log = Arc::clone(&events);
        let first = &sim.nodes()[0];
        let node = client.node(first.address().to_string());
        let options = talos_kube::Options {
            endpoint: first.kube_dial().map(|address| address.to_string()),
            patience: patience(),
            watcher: Arc::new(move |progress| log.lock().unwrap().push(Event::Api { progress })),
            ..talos_kube::Options::new(Timestamp::now())
        };
        let kubeconfig = node.kubeconfig().await.unwrap();
        let kubernetes = reach_through(&node, &kubeconfig, options).await.unwrap();
        Self {
            sim,
            client,
            kubernetes,
            stop: Stop::default(),
            events,
        }
    }

    pub(super) fn cluster(&self) -> Cluster<'_> {
        Cluster {
            talos: &self.client,
            kubernetes: &self.kubernetes,
        }
    }

    pub(super) async fn facts(&self, request: &Request) -> Facts {
        let facts = talos_upgrade::gather(self.cluster(), request, &timing()).await;
        facts.unwrap_or_else(|error| panic!("{}", chain(&error)))
    }

    pub(super) async fn plan(&self, request: &Request) -> Plan {
        talos_upgrade::plan(&self.facts(request).await, request).unwrap()
    }

    pub(super) async fn carry_out(&self, plan: &Plan) -> Result<Report, Error> {
        self.carry_out_watched(plan, |_| {}).await
    }

    /// Carries out a plan with less time for each pod.
    pub(super) async fn carry_out_within(
        &self,
        plan: &Plan,
        pod: Duration,
    ) -> Result<Report, Error> {
        let timing = Timing { pod, ..timing() };
        self.carry_out_with(plan, timing, |_| {}).await
    }

    /// Carries out a plan and looks at each event while it happens.
    pub(super) async fn carry_out_watched(
        &self,
        plan: &Plan,
        watch: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Report, Error> {
        self.carry_out_with(plan, timing(), watch).await
    }

    pub(super) async fn carry_out_with(
        &self,
        plan: &Plan,
        timing: Timing,
        watch: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Report, Error> {
        let log = Arc::clone(&self.events);
        let options = RunOptions {
            timing,
            concurrency: 4,
            stop: self.stop.clone(),
            observer: Arc::new(move |event| {
                watch(&event);
                log.lock().unwrap().push(event);
            }),
        };
        talos_upgrade::run(plan, self.cluster(), options).await
    }

    /// Plans and carries out.
    pub(super) async fn upgrade(&self) -> Report {
        let plan = self.plan(&request()).await;
        assert_eq!(plan.blocked, []);
        let report = self.carry_out(&plan).await;
        report.unwrap_or_else(|error| panic!("{}\n{}", chain(&error), self.story()))
    }

    /// What happened so far, a line each.
    pub(super) fn story(&self) -> String {
        let events = self.events.lock().unwrap();
        let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    pub(super) fn node(&self, name: &str) -> &Node {
        let mut nodes = self.sim.nodes().iter();
        nodes.find(|node| node.name().ends_with(name)).unwrap()
    }

    /// The mirror pod of a node's API server as it is now.
    pub(super) fn api_server(&self, node: &str) -> Value {
        let pods = self.sim.kube_objects("v1", "Pod");
        let name = format!("kube-apiserver-{}", self.node(node).name());
        let pod = pods.iter().find(|pod| pod["metadata"]["name"] == name);
        pod.map_or(Value::Null, |pod| Value::clone(pod))
    }

    /// How many machine configurations were written.
    pub(super) fn writes(&self) -> usize {
        self.calls("ApplyConfiguration").len()
    }

    /// The nodes that got calls of a method, in order.
    pub(super) fn calls(&self, method: &str) -> Vec<String> {
        let calls = self.sim.calls();
        let calls = calls
            .into_iter()
            .filter(|call| call.method.ends_with(method));
        calls.map(|call| call.node).collect()
    }
}

/// A client with an administrator's certificate.
pub(super) fn client(sim: &talos_sim::Cluster) -> Client {
    let text = sim.talosconfig(&["os:admin"]);
    let config = TalosConfig::parse("talosconfig", &text).unwrap();
    let options =
        talos_client::Options::from_context(&config, None, jiff::Timestamp::now()).unwrap();
    Client::new(options).unwrap()
}

pub(super) fn request() -> Request {
    Request {
        to: Some(NEW.parse().unwrap()),
        ..Request::default()
    }
}

/// Two nodes behind NAT, as on Docker Desktop.
pub(super) fn behind_nat() -> Options {
    Options {
        nat: true,
        ..Options::default()
    }
}

pub(super) fn patience() -> Patience {
    let ms = Duration::from_millis;
    Patience {
        connect: ms(2_000),
        request: ms(2_000),
        pause: ms(1),
        longest_pause: ms(5),
        outage: ms(20_000),
    }
}

pub(super) fn timing() -> Timing {
    let ms = Duration::from_millis;
    Timing {
        poll: ms(4),
        config: ms(10_000),
        pod: ms(10_000),
        settle: ms(20),
        kubelet: ms(10_000),
        node: ms(10_000),
        manifests: ms(10_000),
        pull: ms(10_000),
        pull_retry: ms(1),
    }
}

/// A port that is taken, so that nobody else gets it, and at which nothing listens.
pub(super) fn silent() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

/// An error with all its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
