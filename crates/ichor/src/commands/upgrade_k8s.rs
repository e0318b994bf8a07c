//! `ichor upgrade-k8s`: another version of Kubernetes on a whole cluster.

mod document;
mod progress;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use talos_client::Kind;
use talos_kube::{Component, Kubernetes, Options, reach_through};
use talos_upgrade::{
    Cluster, Image, InventoryPolicy, ManifestOptions, Plan, Request, RunOptions, Stop, Timing,
    gather, plan, preview, rules,
};

pub(crate) use document::{Document, EventLine};
use progress::Teller;

use crate::connect::{Target, system_roots};
use crate::error::{Code, Error, Outcome};
use crate::output::OutputArgs;
use crate::session::Session;
use crate::values;

/// Upgrade Kubernetes on the whole cluster
///
/// One control plane node is asked about the cluster (-n, else the context's nodes). Every image is pulled first, then
/// kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy and the kubelets follow, one node at a time, and
/// last the bootstrap manifests. Of each machine configuration only the images change. A run that ended early is
/// continued by the same command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The version to reach; by default the one that the oldest node's Talos release brings
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// The version to start from, believed as it is; by default the lowest that runs
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,
    /// Where the Kubernetes API answers from here, such as a forwarded port; 6443 if no port is given
    #[arg(long, alias = "endpoint", value_name = "HOST:PORT")]
    k8s_endpoint: Option<String>,
    /// Only show what would be done: nothing is written and no image is pulled
    #[arg(long)]
    dry_run: bool,
    /// Pull all images before anything is changed
    #[arg(long, default_value = "true")]
    pre_pull_images: bool,
    /// Upgrade the kubelets too
    #[arg(long, default_value = "true")]
    upgrade_kubelet: bool,
    /// Take kube-apiserver from this repository instead of the configured one
    #[arg(long, value_name = "REPOSITORY")]
    apiserver_image: Option<String>,
    /// Take kube-controller-manager from this repository instead of the configured one
    #[arg(long, value_name = "REPOSITORY")]
    controller_manager_image: Option<String>,
    /// Take kube-scheduler from this repository instead of the configured one
    #[arg(long, value_name = "REPOSITORY")]
    scheduler_image: Option<String>,
    /// Take kube-proxy from this repository instead of the configured one
    #[arg(long, value_name = "REPOSITORY")]
    proxy_image: Option<String>,
    /// Take the kubelet from this repository instead of the configured one
    #[arg(long, value_name = "REPOSITORY")]
    kubelet_image: Option<String>,
    /// Delete and create again manifests' objects that cannot be changed
    #[arg(long)]
    manifests_force: bool,
    /// Keep objects that left the manifests
    #[arg(long)]
    manifests_no_prune: bool,
    /// Which objects the manifests may take over: MustMatch, AdoptIfNoInventory or AdoptAll
    #[arg(long, value_name = "POLICY", default_value = "AdoptIfNoInventory", value_parser = policy)]
    manifests_inventory_policy: InventoryPolicy,
    /// Wait so long until changed objects are ready; 0 does not wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    manifests_reconcile_timeout: Duration,
    /// Accepted for scripts: comments stay as they are, none are added
    #[arg(long, default_value = "true", hide = true)]
    with_docs: bool,
    /// Accepted for scripts: comments stay as they are, none are added
    #[arg(long, default_value = "true", hide = true)]
    with_examples: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let request = args.request()?;
    // A wrong address is told before anything is dialled.
    if let Some(endpoint) = &args.k8s_endpoint {
        talos_kube::Address::parse(endpoint)?;
    }
    let target = asked(session)?;
    let runtime = session.runtime()?;
    let timing = Timing::default();
    let mut teller = Teller::new();
    let options = Options {
        endpoint: args.k8s_endpoint.clone(),
        proxy: session.proxy()?,
        patience: session.patience(),
        // Nothing was reached yet, so a server that restarts cannot be told from a wrong address.
        search: session.global.connect_timeout,
        watcher: teller.watcher(),
        system_roots,
        ..Options::new(Timestamp::now())
    };
    let prepared = runtime.run(teller.telling(&mut session.output, async {
        let kubernetes = reach(&target, options).await?;
        let cluster = Cluster {
            talos: &target.client,
            kubernetes: &kubernetes,
        };
        let facts = gather(cluster, &request, &timing).await?;
        let plan = plan(&facts, &request)?;
        let objects = if args.dry_run && !plan.is_blocked() {
            preview(cluster, &plan, &timing).await?
        } else {
            Vec::new()
        };
        Ok((kubernetes, plan, objects))
    }))?;
    let (kubernetes, plan, objects) = prepared;
    let mut document = Document::new(&plan, &kubernetes, &objects);
    if args.dry_run || plan.is_blocked() {
        document.print(&mut session.output)?;
        return Ok(if plan.is_blocked() {
            Outcome::Found
        } else {
            Outcome::Done
        });
    }
    confirm(session, &plan)?;
    let cluster = Cluster {
        talos: &target.client,
        kubernetes: &kubernetes,
    };
    let options = |stop| RunOptions {
        timing,
        concurrency: target.concurrency(),
        stop,
        observer: teller.observer(),
    };
    let stop = Stop::default();
    let work = talos_upgrade::run(&plan, cluster, options(stop.clone()));
    let report = runtime.run_steps(|interrupt| {
        let output = &mut session.output;
        teller.telling_until(output, interrupt, stop, async { Ok(work.await?) })
    })?;
    document.report(&report);
    document.print_report(&mut session.output)?;
    Ok(Outcome::Done)
}

/// The nodes to ask: the one of `-n`, else those of the context until a control plane answers.
fn asked(session: &mut Session) -> Result<Target, Error> {
    if session.global.nodes.is_empty() {
        session.reading()
    } else {
        session.reading_one("upgrade-k8s")
    }
}

/// Reaches Kubernetes through the first of the nodes that is a control plane and answers.
async fn reach(target: &Target, options: Options) -> Result<Kubernetes, Error> {
    let mut failures = Vec::new();
    for (name, node) in target.handles() {
        match node.kubeconfig().await {
            Ok(kubeconfig) => return Ok(reach_through(&node, &kubeconfig, options).await?),
            Err(error) if error.kind() == Kind::NotImplemented || error.is_transient() => {
                failures.push((name, error));
            }
            Err(error) => return Err(Error::from(error).context(NO_KUBECONFIG)),
        }
    }
    Err(unreached(failures))
}

const NO_KUBECONFIG: &str = "failed to fetch a kubeconfig";

/// Why no node gave a kubeconfig: the first that did not answer, else the first worker, and then the others.
fn unreached(mut failures: Vec<(&str, talos_client::Error)>) -> Error {
    let is_worker = |error: &talos_client::Error| error.kind() == Kind::NotImplemented;
    failures.sort_by_key(|(_, error)| is_worker(error));
    let workers = failures.iter().all(|(_, error)| is_worker(error));
    let mut failures = failures.into_iter();
    let Some((_, first)) = failures.next() else {
        return Error::new(Code::Usage, "there is no node to ask");
    };
    let mut made = Error::from(first).context(NO_KUBECONFIG);
    for (name, error) in failures {
        made = made.cause(format!("{name}: {error}"));
    }
    if workers {
        made.hint("name a control plane node with -n")
    } else {
        made
    }
}

/// Says what will be touched and asks.
fn confirm(session: &mut Session, plan: &Plan) -> Result<(), Error> {
    for warning in &plan.warnings {
        session.output.warn(&warning.to_string());
    }
    let touched: Vec<String> = plan.touched().map(|node| node.name.clone()).collect();
    if touched.is_empty() {
        session
            .output
            .note("upgrade-k8s: no machine configuration changes");
    } else {
        session.announce("upgrade-k8s", &touched);
    }
    session.output.warn(
        "nothing keeps a second run from doing the same at the same time: see that there is none",
    );
    session.confirm(&format!(
        "Upgrade Kubernetes from {} to {}?",
        plan.from, plan.to
    ))
}

impl Args {
    fn request(&self) -> Result<Request, Error> {
        let version = |flag: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(rules::parse_version).transpose();
            parsed.map_err(|error| Error::from(error).context(format!("--{flag} cannot be used")))
        };
        let mut repositories = BTreeMap::new();
        for (component, flag, text) in [
            (
                Component::KubeApiserver,
                "apiserver-image",
                &self.apiserver_image,
            ),
            (
                Component::KubeControllerManager,
                "controller-manager-image",
                &self.controller_manager_image,
            ),
            (
                Component::KubeScheduler,
                "scheduler-image",
                &self.scheduler_image,
            ),
            (Component::KubeProxy, "proxy-image", &self.proxy_image),
            (Component::Kubelet, "kubelet-image", &self.kubelet_image),
        ] {
            let Some(text) = text else { continue };
            let repository = Image::parse_repository(text)
                .map_err(|error| Error::from(error).context(format!("--{flag} cannot be used")))?;
            repositories.insert(component, repository);
        }
        Ok(Request {
            from: version("from", &self.from)?,
            to: version("to", &self.to)?,
            repositories,
            pre_pull: self.pre_pull_images,
            upgrade_kubelet: self.upgrade_kubelet,
            manifests: ManifestOptions {
                force: self.manifests_force,
                prune: !self.manifests_no_prune,
                policy: self.manifests_inventory_policy,
                reconcile: self.manifests_reconcile_timeout,
            },
        })
    }
}

fn policy(text: &str) -> Result<InventoryPolicy, String> {
    match text {
        "MustMatch" => Ok(InventoryPolicy::MustMatch),
        "AdoptIfNoInventory" => Ok(InventoryPolicy::AdoptIfNoInventory),
        "AdoptAll" => Ok(InventoryPolicy::AdoptAll),
        _ => Err(format!(
            "`{text}` is none of MustMatch, AdoptIfNoInventory, AdoptAll"
        )),
    }
}
