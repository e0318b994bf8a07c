//! What errors of reaching and upgrading Kubernetes are called here.

use super::{Code, Error};

impl From<talos_kube::Error> for Error {
    fn from(error: talos_kube::Error) -> Self {
        use talos_kube::Error as Source;
        let hint = error.hint();
        let code = match &error {
            Source::Address { .. } => Code::Usage,
            Source::Kubeconfig { .. } | Source::Context { .. } => Code::Invalid,
            Source::Unreachable { .. } | Source::Outage { .. } => Code::Unreachable,
            Source::Certificate { .. } => Code::Untrusted,
            Source::Refused { .. } => Code::NotAllowed,
            Source::Request { .. } if matches!(error.status(), Some(401 | 403)) => Code::NotAllowed,
            _ => Code::Failed,
        };
        let made = Self::of(code, &error);
        match hint {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}

impl From<talos_upgrade::Error> for Error {
    fn from(error: talos_upgrade::Error) -> Self {
        use talos_upgrade::Error as Source;
        let hint = error.hint();
        let code = match &error {
            Source::Image { .. } | Source::Version { .. } | Source::NoTarget => Code::Usage,
            Source::Config { .. } => Code::Invalid,
            Source::Blocked { .. } | Source::Pending { .. } => Code::Precondition,
            Source::Contended { .. } => Code::Conflict,
            Source::Pull { failures } => pull(failures),
            Source::TimedOut { .. }
            | Source::NotReconciled { .. }
            | Source::ManifestsStale { .. }
            | Source::ManifestsMissing { .. } => Code::TimedOut,
            Source::Interrupted { .. } => Code::Interrupted,
            _ => Code::Failed,
        };
        let message = error.to_string();
        let made = match error {
            Source::Talos { node, source, .. } => Self::from(*source).context(message).node(node),
            Source::Kubernetes { source, .. } => Self::from(*source).context(message),
            other => Self::of(code, &other),
        };
        match hint {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}

fn pull(failures: &[talos_upgrade::PullFailure]) -> Code {
    let missing =
        |failure: &talos_upgrade::PullFailure| failure.error.kind() == talos_client::Kind::NotFound;
    if failures.iter().all(missing) {
        Code::NotFound
    } else {
        Code::Failed
    }
}
