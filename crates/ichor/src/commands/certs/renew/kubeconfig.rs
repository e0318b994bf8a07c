//! `ichor certs renew kubeconfig`.

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use talos_certs::{RenewedCertificate, issue_kubernetes_admin, put_kubernetes_user};
use talos_config::kubeconfig::{Kubeconfig, Material};
use talos_kube::{Access as KubeAccess, Options, reach};
use talos_pki::{Certificate, PrivateKey};

use super::{Common, Document, authority, lifetime, untried};
use crate::commands::kubeconfig::usual_file;
use crate::connect::system_roots;
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access, Protocol};
use crate::session::Session;
use crate::values;

/// Renew the administrator's certificate in a kubeconfig
///
/// A control plane node issues it (-n, else the context's first node), or a secrets bundle does with --from-secrets. The
/// file is the one that KUBECONFIG names, or ~/.kube/config, unless one is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The kubeconfig
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// The kubeconfig's context; by default its current one
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
    /// How long it lives: 8760h from a secrets bundle by default; a node decides by cluster.adminKubeconfig.certLifetime
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    ttl: Option<Duration>,
    /// Where the Kubernetes API answers from here, such as a forwarded port
    #[arg(long, value_name = "HOST:PORT")]
    k8s_endpoint: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// How long an administrator's certificate lives that a bundle issues.
const YEAR: Duration = Duration::from_secs(8760 * 60 * 60);

/// By how much the lifetime of what a node issues may differ from what was asked for: Talos starts it 10 s early.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

/// A new certificate with its key, and the authorities of the cluster.
struct Fresh {
    crt: String,
    key: String,
    /// Absent where only the certificate is new.
    authorities: Option<String>,
    /// The authorities that the kubeconfig has to know one of, so that it is of this cluster.
    known: Vec<Certificate>,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => usual_file(session)?,
    };
    if let Some(endpoint) = &args.k8s_endpoint {
        talos_kube::Address::parse(endpoint)?;
    }
    if let Some(ttl) = args.ttl {
        lifetime(ttl)?;
    }
    let text = files::read(&path)?;
    session.output.learn_secrets_of(&text);
    let parsed = parse(&path.display().to_string(), &text)?;
    let granted = parsed
        .access(args.kube_context.as_deref())
        .map_err(unreadable)?;
    let leaf = match &granted.user.certificate {
        Some(material) => one(&bytes(material, &path)?)?.into_iter().next(),
        None => None,
    };
    let now = Timestamp::now();
    let mut document = Document {
        changed: args.common.is_due(leaf.as_ref(), now),
        dry_run: args.common.dry_run,
        path: path.display().to_string(),
        context: granted.context.to_owned(),
        old: leaf.as_ref().map(RenewedCertificate::from),
        new: None,
        verified: false,
    };
    let secrets = args.common.secrets(session)?;
    if !document.changed || args.common.dry_run {
        return args.common.finish(session, &document);
    }
    let fresh = match (&secrets, &args.common.from_secrets) {
        (Some(secrets), Some(bundle)) => {
            let pair = &secrets.kubernetes;
            let authority = authority(bundle, "Kubernetes authority", &pair.crt, &pair.key)?;
            let lifetime = lifetime(args.ttl.unwrap_or(YEAR))?;
            let issued = issue_kubernetes_admin(&authority, lifetime, now)
                .map_err(|error| Error::of(Code::Failed, &error))?;
            Fresh {
                crt: issued.certificate.pem(),
                key: issued.key.pem().to_string(),
                authorities: None,
                known: vec![authority.certificate().clone()],
            }
        }
        _ => ask(args, session)?,
    };
    session.output.learn_secret(&fresh.key);
    let theirs = match &granted.cluster.authority {
        Some(material) => one(&bytes(material, &path)?)?,
        None => Vec::new(),
    };
    let is_known = |their: &Certificate| fresh.known.iter().any(|one| one.der() == their.der());
    if !theirs.iter().any(is_known) {
        let message = format!(
            "{}: context {:?} is of another cluster: it trusts other authorities",
            path.display(),
            granted.context
        );
        return Err(Error::new(Code::Conflict, message)
            .hint("choose another one with --kube-context; `ichor kubeconfig` adds this cluster"));
    }
    let issued = one(fresh.crt.as_bytes())?;
    document.new = issued.first().map(RenewedCertificate::from);
    let cluster = fresh.authorities.as_deref();
    let edit = |text: &str| {
        put_kubernetes_user(
            text,
            (granted.user_name, &fresh.crt, &fresh.key),
            cluster.map(|authorities| (granted.cluster_name, authorities)),
        )
        .map_err(|error| Error::of(Code::Invalid, &error))
    };
    let renewed = edit(&text)?;
    if args.common.verify {
        let config = parse(&path.display().to_string(), &renewed)?;
        verify(args, session, &config, granted.context, now)
            .map_err(|error| untried(error, &args.common))?;
        document.verified = true;
    }
    let lock = files::lock(&path, Protocol::Kubeconfig, session)?;
    if files::read(&path)? != text {
        let message = format!("{} was changed meanwhile", path.display());
        return Err(Error::new(Code::Conflict, message).hint("nothing was written; try again"));
    }
    files::write(&path, renewed.as_bytes(), Access::Owner)?;
    drop(lock);
    args.common.finish(session, &document)
}

/// Has a kubeconfig issued by a node.
fn ask(args: &Args, session: &mut Session) -> Result<Fresh, Error> {
    let mut look = session.looking()?;
    if !session.global.nodes.is_empty() {
        crate::nodes::only(look.nodes.clone(), "certs renew kubeconfig")?;
    }
    look.nodes.truncate(1);
    let text = session.runtime()?.run(async {
        let client = talos_client::Client::new(look.options)?;
        let name = look.nodes.first().map(String::as_str).unwrap_or_default();
        let node = client.node(name);
        node.kubeconfig()
            .await
            .map_err(|error| Error::from(error).node(name))
    })?;
    let what = "the node's kubeconfig";
    let kubeconfig = parse(what, &text)?;
    let granted = kubeconfig.access(None).map_err(unreadable)?;
    let inline = |material: &Option<Material>, field: &str| match material {
        Some(Material::Inline(pem)) => Ok(pem.clone()),
        _ => {
            let message = format!("{what} has no {field}");
            Err(Error::new(Code::Failed, message))
        }
    };
    let crt = inline(&granted.user.certificate, "client-certificate-data")?;
    let key = inline(&granted.user.key, "client-key-data")?;
    let authorities = inline(&granted.cluster.authority, "certificate-authority-data")?;
    let leaf = one(&crt)?;
    check_lifetime(args, leaf.first())?;
    let key = PrivateKey::from_pem(&key).map_err(|error| Error::of(Code::Failed, &error))?;
    Ok(Fresh {
        crt: leaf.iter().map(Certificate::pem).collect(),
        key: key.pem().to_string(),
        known: one(&authorities)?,
        authorities: Some(String::from_utf8_lossy(&authorities).into_owned()),
    })
}

/// Refuses what a node issued if it does not live as long as was asked for: only the machine decides about that.
fn check_lifetime(args: &Args, leaf: Option<&Certificate>) -> Result<(), Error> {
    let (Some(ttl), Some(leaf)) = (args.ttl, leaf) else {
        return Ok(());
    };
    let lives = leaf.not_after().duration_since(leaf.not_before());
    if (lives - lifetime(ttl)?).abs() <= TOLERANCE {
        return Ok(());
    }
    let message = format!(
        "the node issues administrators' certificates for {}h, and --ttl asks for another time",
        lives.as_hours()
    );
    Err(Error::new(Code::Precondition, message).hint(
        "set cluster.adminKubeconfig.certLifetime on the node, or issue it with --from-secrets",
    ))
}

/// Tries the new certificate.
fn verify(
    args: &Args,
    session: &mut Session,
    config: &Kubeconfig,
    context: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let access = KubeAccess::from_kubeconfig(config, Some(context))?;
    let options = Options {
        endpoint: args.k8s_endpoint.clone(),
        proxy: session.proxy()?,
        patience: session.patience(),
        search: session.global.connect_timeout,
        system_roots,
        ..Options::new(now)
    };
    session.runtime()?.run(async {
        // The list of nodes is for those who are known, which the version is not.
        let kubernetes = reach(&access, options).await?;
        kubernetes.nodes().await?;
        Ok(())
    })
}

fn parse(file: &str, text: &str) -> Result<Kubeconfig, Error> {
    Kubeconfig::parse(file, text).map_err(unreadable)
}

fn unreadable(error: talos_config::kubeconfig::Error) -> Error {
    Error::of(Code::Invalid, &error)
}

/// The content of a field; a file that it names is beside the kubeconfig.
fn bytes(material: &Material, path: &std::path::Path) -> Result<Vec<u8>, Error> {
    match material {
        Material::Inline(pem) => Ok(pem.clone()),
        Material::File(name) => {
            let folder = path.parent().unwrap_or(std::path::Path::new(""));
            Ok(files::read(&folder.join(name))?.into_bytes())
        }
    }
}

fn one(pem: &[u8]) -> Result<Vec<Certificate>, Error> {
    Certificate::many_from_pem(pem).map_err(|error| Error::of(Code::Invalid, &error))
}
