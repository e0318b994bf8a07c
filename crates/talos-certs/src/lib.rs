//! The certificates of a whole cluster: what servers present, and whether it fits how they are reached.
//!
//! Gathering comes first: [`collect`] asks nodes and probes their servers, [`collect_kubernetes`] and [`read_file`] add what
//! Kubernetes and files hold, all into one [`Evidence`]. [`probe`] fetches the chain a TLS server presents, trusting nobody;
//! [`verified_handshake`] tells whether it verifies.
//!
//! What can be said of evidence are pure functions at a given time: [`list`] is every certificate once, [`check`] judges names,
//! dates, chains and roles and says what repairs each finding, [`page()`] shows both to people, [`Snapshot`] tells what changed, and
//! [`metrics()`] writes it for Prometheus.
//!
//! Three things change something, each by a plan that can be printed: [`fix`] adds names to the configuration of nodes,
//! [`rotate`] gives a running cluster other authorities, and a killed run goes on, and the functions of renewal make new
//! credentials.
//!
//! Deliberately absent: finding files and printing.
//!
//! Architecture invariant: the only place of the workspace that looks at an unverified chain is [`probe`].

mod check;
mod collect;
mod connection;
mod error;
mod evidence;
mod facts;
mod files;
mod fix;
mod handshake;
mod inventory;
mod kubernetes;
mod metrics;
mod page;
mod probe;
mod renew;
mod report;
mod rotate;
mod servers;
mod setting;
mod snapshot;
mod stop;

pub use check::{CheckOptions, ExpectProblem, ExpectedName, check, read_expectations};
pub use collect::{CollectOptions, KubernetesAccess, collect};
pub use error::Error;
pub use evidence::{
    ClientSeen, ClockSeen, Evidence, Kept, NodeFacts, Place, RequestSeen, RequestState, Seen,
    TrustSeen, WantedNames,
};
pub use files::{FileContents, FileKind, FileProblem, Reference, read_file};
pub use fix::{
    FixAccess, FixChange, FixConfig, FixError, FixEvent, FixOptions, FixPlan, FixReport, FixState,
    FixTiming, FixedNode, NodeFix, NotFixable, VerifiedName, fix, plan_fix,
};
pub use handshake::{Handshake, verified_handshake};
pub use inventory::{
    Inventory, InventorySource, IssuedBy, Listed, ListedPlace, ListedRequest, Renewal, Validity,
    list,
};
pub use kubernetes::collect_kubernetes;
pub use metrics::{LastErrors, metrics};
pub use page::page;
pub use probe::{Alert, Failure, Outcome, Probe, ProbeOptions, TlsVersion, probe, probe_any};
pub use renew::{
    RenewError, RenewedCertificate, is_due, issue_kubernetes_admin, issue_talos_client,
    put_kubernetes_user,
};
pub use report::{
    CertificateSummary, Client, ClusterEndpoint, EndpointSource, Fix, NameSource, NameVerdict,
    NotChecked, Problem, Report, Server, ServerKind, Source,
};
pub use rotate::{
    ConfigProblem, Journal, Keep, KeepError, RotateAccess, RotateClock, RotateError, RotateEvent,
    RotateFacts, RotateKubernetes, RotateNode, RotateObserver, RotateOptions, RotatePlan,
    RotateReport, RotateStep, RotateTiming, Rotated, Rotation, Round, TalosCredentials,
    gather_rotation, plan_rotation, rotate,
};
pub use servers::probe_server;
pub use setting::Setting;
pub use snapshot::{Change, Snapshot, Spot};
pub use stop::Stop;
