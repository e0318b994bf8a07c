//! `ichor certs rotate-ca`: other authorities for a running cluster, without a moment in which a node cannot be reached.

mod keep;
mod show;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use talos_certs::{
    Journal, Keep, RotateAccess, RotateClock, RotateFacts, RotateKubernetes, RotateOptions,
    RotatePlan, RotateReport, RotateTiming, Rotated, Stop, gather_rotation, plan_rotation, rotate,
};
use talos_client::Endpoint;
use tokio::sync::mpsc::unbounded_channel;

use self::keep::Files;
use crate::connect::{Look, system_roots};
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Protocol};
use crate::output::{Format, text_format};
use crate::session::Session;

/// Rotate the Talos and the Kubernetes certificate authority of a whole cluster
///
/// Every node first accepts the new authority, then issues by it, and forgets the old one last; control planes come
/// before workers, one node at a time, and each round begins when every node was verified in the one before. Nothing is
/// changed unless --dry-run=false is given.
///
/// The talosconfig in --output is written whenever the credentials in use have to be others, so that with it every node
/// can be reached at every moment; while both authorities are in use it trusts both. The new authority is kept in the
/// file of --state until all is done: a run that ended early is continued by the same command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only show what would be done: nothing is written anywhere
    #[arg(long, default_value = "true")]
    dry_run: bool,
    /// Rotate the authority of the Talos API
    #[arg(long, default_value = "true")]
    talos: bool,
    /// Rotate the authority of Kubernetes
    #[arg(long, default_value = "true")]
    kubernetes: bool,
    /// Where to write the talosconfig; an existing one gets the context's new credentials and keeps the rest
    #[arg(short, long, value_name = "TALOSCONFIG", default_value = "talosconfig")]
    output: PathBuf,
    /// Where to keep the state of the rotation, private keys included; by default OUTPUT.rotate-ca.json
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Where the Kubernetes API answers from here, such as a forwarded port
    #[arg(long, value_name = "HOST:PORT")]
    k8s_endpoint: Option<String>,
    /// The first control plane node
    #[arg(long, value_name = "NODE")]
    init_node: Option<String>,
    /// The control plane nodes, instead of those that the cluster knows
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    control_plane_nodes: Vec<String>,
    /// The worker nodes, instead of those that the cluster knows
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    worker_nodes: Vec<String>,
    /// Accepted for scripts: comments stay as they are, none are added
    #[arg(long, default_value = "true", hide = true)]
    with_docs: bool,
    /// Accepted for scripts: comments stay as they are, none are added
    #[arg(long, default_value = "true", hide = true)]
    with_examples: bool,
    /// How to print what is done: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// What a rotation is, and what it came to.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    /// Whether nothing was written.
    dry_run: bool,
    /// Where the talosconfig is written.
    output: String,
    /// Where the state is kept until all is done.
    state: String,
    /// What has to be done, for each authority.
    plans: Vec<RotatePlan>,
    /// What was done, for each authority.
    done: Vec<RotateReport>,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let authorities = args.authorities()?;
    if let Some(endpoint) = &args.k8s_endpoint {
        talos_kube::Address::parse(endpoint)?;
    }
    let asked = asked(session)?;
    let config = session.talosconfig()?;
    let (context, template) = config.select(session.global.context.as_deref())?;
    let files = Files {
        output: args.output.clone(),
        state: args.state_path(),
        context: context.to_owned(),
        template: template.clone(),
    };
    files::regular(&files.output, "--output")?;
    files::regular(&files.state, "--state")?;
    if files.output == files.state {
        return Err(Error::new(
            Code::Usage,
            "--output and --state name the same file",
        ));
    }
    // A run that writes nothing takes no lock either, which would be a file.
    let locks = match args.dry_run {
        true => None,
        false => Some((
            files::lock(&files.state, Protocol::Own, session)?,
            files::lock(&files.output, Protocol::Own, session)?,
        )),
    };
    let mut journal = files.journal()?;
    for rotation in &journal.rotations {
        session.output.learn_secret(&rotation.new.key().pem());
    }
    files.check(&asked.options, &journal)?;
    let access = RotateAccess {
        options: asked.options.clone(),
    };
    let clock: RotateClock = Arc::new(Timestamp::now);
    let named = args.nodes();
    let facts = session.runtime()?.run(async {
        Ok(gather_rotation(&access, &journal, &asked.nodes, &named, &clock).await?)
    })?;
    for node in &facts.nodes {
        session.output.learn_secrets_of(&node.config);
    }
    let plans = authorities
        .iter()
        .map(|authority| plan_rotation(*authority, &facts, journal.of(*authority)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut document = Document {
        dry_run: args.dry_run,
        output: files.output.display().to_string(),
        state: files.state.display().to_string(),
        plans,
        done: Vec::new(),
    };
    let is_blocked = document.plans.iter().any(RotatePlan::is_blocked);
    if args.dry_run || is_blocked {
        show::document(&mut session.output, &document)?;
        return Ok(match is_blocked {
            true => Outcome::Found,
            false => Outcome::Done,
        });
    }
    confirm(session, &document, &facts)?;
    let options = RotateOptions {
        timing: RotateTiming::default(),
        now: clock,
        stop: Stop::default(),
        observer: Arc::new(|_| {}),
        kubernetes: Some(kubernetes(&args, session)?),
    };
    let work = Work {
        authorities: &authorities,
        facts: &facts,
        access: &access,
        files: &files,
    };
    document.done = carry_out(session, &work, &mut journal, options)?;
    files.finish(&journal)?;
    drop(locks);
    show::document(&mut session.output, &document)?;
    Ok(Outcome::Done)
}

/// Returns the nodes that can tell who the members are: those named, or of the context, or its endpoints.
fn asked(session: &mut Session) -> Result<Look, Error> {
    let mut look = session.look(|choice| Ok(choice.to_read().unwrap_or_default()))?;
    if look.nodes.is_empty() {
        let endpoints = look.options.endpoints.iter();
        let parsed = endpoints.filter_map(|text| text.parse::<Endpoint>().ok());
        look.nodes = parsed.map(|endpoint| endpoint.host()).collect();
    }
    Ok(look)
}

/// What is rotated, where.
struct Work<'a> {
    authorities: &'a [Rotated],
    facts: &'a RotateFacts,
    access: &'a RotateAccess,
    files: &'a Files,
}

/// Rotates one authority after the other and tells meanwhile what happens.
fn carry_out(
    session: &mut Session,
    work: &Work<'_>,
    journal: &mut Journal,
    mut options: RotateOptions,
) -> Result<Vec<RotateReport>, Error> {
    let (sender, mut events) = unbounded_channel();
    options.observer = Arc::new(move |event| {
        // Nobody listens any more when the run has ended.
        let _ = sender.send(event);
    });
    let (write_journal, write_talosconfig) = (
        |text: &str| work.files.write_journal(text).map_err(Error::into_cause),
        |credentials: &talos_certs::TalosCredentials| {
            work.files
                .write_talosconfig(credentials)
                .map_err(Error::into_cause)
        },
    );
    let keep = Keep {
        journal: &write_journal,
        talosconfig: &write_talosconfig,
    };
    let stop = options.stop.clone();
    let runtime = session.runtime()?;
    let output = &mut session.output;
    runtime.run_steps(async |mut interrupt| {
        let mut rotating = pin!(async {
            let mut done = Vec::new();
            for authority in work.authorities {
                let Work { facts, access, .. } = work;
                let report = rotate(*authority, facts, journal, access, &keep, &options).await?;
                done.push(report);
            }
            Ok::<_, Error>(done)
        });
        let mut asked = false;
        let result = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => show::event(output, &event),
                result = &mut rotating => break result,
                () = interrupt.wait(), if !asked => {
                    asked = true;
                    stop.request();
                    output.note("rotate-ca: stopping after this step; Ctrl-C again stops at once");
                }
            }
        };
        while let Ok(event) = events.try_recv() {
            show::event(output, &event);
        }
        result
    })
}

fn confirm(session: &mut Session, document: &Document, facts: &RotateFacts) -> Result<(), Error> {
    let nodes: Vec<String> = facts.nodes.iter().map(|node| node.name.clone()).collect();
    for warning in document.plans.iter().flat_map(|plan| &plan.warnings) {
        session.output.warn(warning);
    }
    session.announce("rotate-ca", &nodes);
    let labels: Vec<&str> = document
        .plans
        .iter()
        .map(|plan| plan.authority.label())
        .collect();
    session.confirm(&format!(
        "Rotate the {} on {} nodes?",
        labels.join(" and the "),
        nodes.len()
    ))
}

fn kubernetes(args: &Args, session: &Session) -> Result<RotateKubernetes, Error> {
    Ok(RotateKubernetes {
        endpoint: args.k8s_endpoint.clone(),
        proxy: session.proxy()?,
        patience: session.patience(),
        system_roots,
    })
}

impl Args {
    fn authorities(&self) -> Result<Vec<Rotated>, Error> {
        let both = [
            (self.talos, Rotated::Talos),
            (self.kubernetes, Rotated::Kubernetes),
        ];
        let wanted: Vec<Rotated> = both
            .into_iter()
            .filter_map(|(wanted, authority)| wanted.then_some(authority))
            .collect();
        if wanted.is_empty() {
            return Err(Error::new(
                Code::Usage,
                "with --talos=false and --kubernetes=false there is nothing to rotate",
            ));
        }
        Ok(wanted)
    }

    fn nodes(&self) -> Vec<String> {
        let all = self
            .init_node
            .iter()
            .chain(&self.control_plane_nodes)
            .chain(&self.worker_nodes);
        let mut nodes: Vec<String> = Vec::new();
        for node in all {
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes
    }

    fn state_path(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| {
            let mut name = self.output.as_os_str().to_owned();
            name.push(".rotate-ca.json");
            PathBuf::from(name)
        })
    }
}
