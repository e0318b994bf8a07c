//! `ichor certs renew talosconfig`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use talos_certs::{RenewedCertificate, issue_talos_client};
use talos_client::{Client, Node, Options};
use talos_config::talosconfig::{Context, Hidden, TalosConfig};
use talos_pki::Certificate;

use super::{Common, Document, authority, lifetime, untried};
use crate::connect::Look;
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access, Protocol};
use crate::session::Session;
use crate::values;

/// Renew the client certificate of a talosconfig's context
///
/// A control plane node issues it (-n, else any endpoint), or a secrets bundle does with --from-secrets, which also helps
/// when the old certificate has expired.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The roles of the certificate; by default those of the old one
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
    roles: Vec<String>,
    /// How long it lives
    #[arg(long, alias = "crt-ttl", value_name = "DURATION", default_value = "8760h", value_parser = values::duration)]
    ttl: Duration,
    #[command(flatten)]
    common: Common,
}

/// The credentials of a client, in PEM.
struct Pem {
    ca: String,
    crt: String,
    key: String,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let place = session.talosconfig_place()?;
    if !place.writable {
        let message = format!(
            "{} cannot be changed: Talos provides it",
            place.path.display()
        );
        return Err(Error::new(Code::Precondition, message));
    }
    lifetime(args.ttl)?;
    let config = session.talosconfig()?;
    let (name, context) = config.select(session.global.context.as_deref())?;
    let old = config.credentials(name)?;
    let leaf = old.identity.as_ref().map(|identity| &identity.chain[0]);
    let now = Timestamp::now();
    let mut document = Document {
        changed: args.common.is_due(leaf, now),
        dry_run: args.common.dry_run,
        path: place.path.display().to_string(),
        context: name.to_owned(),
        old: leaf.map(RenewedCertificate::from),
        new: None,
        verified: false,
    };
    let secrets = args.common.secrets(session)?;
    if !document.changed || args.common.dry_run {
        return args.common.finish(session, &document);
    }
    let roles = match (args.roles.as_slice(), leaf) {
        ([], Some(leaf)) if !leaf.organizations().is_empty() => leaf.organizations().to_vec(),
        ([], _) => vec!["os:admin".to_owned()],
        (roles, _) => roles.to_vec(),
    };
    let pem = match (&secrets, &args.common.from_secrets) {
        (Some(secrets), Some(path)) => {
            let os = authority(path, "Talos authority", &secrets.os.crt, &secrets.os.key)?;
            let trusted = &old.authorities;
            if !trusted.is_empty()
                && !trusted
                    .iter()
                    .any(|one| one.der() == os.certificate().der())
            {
                let message = format!(
                    "the authority in {} is not one that context {name:?} trusts",
                    path.display()
                );
                return Err(Error::new(Code::Conflict, message)
                    .hint("the bundle is of another cluster, or its authority was rotated"));
            }
            let issued = issue_talos_client(&os, &roles, lifetime(args.ttl)?, now)
                .map_err(|error| Error::of(Code::Failed, &error))?;
            let ca = match trusted.is_empty() {
                true => os.certificate().pem(),
                false => trusted.iter().map(Certificate::pem).collect(),
            };
            Pem {
                ca,
                crt: issued.certificate.pem(),
                key: issued.key.pem().to_string(),
            }
        }
        _ => ask(session, &roles, args.ttl)?,
    };
    session.output.learn_secret(&pem.key);
    let fresh = Context {
        ca: Some(STANDARD.encode(&pem.ca)),
        crt: Some(STANDARD.encode(&pem.crt)),
        key: Some(Hidden::new(STANDARD.encode(&pem.key))),
        ..context.clone()
    };
    let mut renewed = config.clone();
    renewed.put_context(name, &fresh)?;
    let credentials = renewed.credentials(name)?;
    let new = credentials
        .identity
        .as_ref()
        .map(|identity| &identity.chain[0]);
    document.new = new.map(RenewedCertificate::from);
    if args.common.verify {
        verify(session, &renewed, name, now).map_err(|error| untried(error, &args.common))?;
        document.verified = true;
    }
    let lock = files::lock(&place.path, Protocol::Own, session)?;
    let text = files::read(&place.path)?;
    let mut current = TalosConfig::parse(place.path.display().to_string(), &text)?;
    if current.contexts().get(name) != Some(context) {
        let message = format!("context {name:?} was changed meanwhile");
        return Err(Error::new(Code::Conflict, message).hint("nothing was written; try again"));
    }
    current.put_context(name, &fresh)?;
    files::write(&place.path, current.text().as_bytes(), Access::Owner)?;
    drop(lock);
    args.common.finish(session, &document)
}

/// Has a certificate issued by the node that is named, or by whichever endpoint answers.
fn ask(session: &mut Session, roles: &[String], ttl: Duration) -> Result<Pem, Error> {
    let look = named(session)?;
    let runtime = session.runtime()?;
    let issued = runtime.run(async {
        let client = Client::new(look.options)?;
        let node = first(&client, &look.nodes);
        Ok(node.generate_client_configuration(roles, ttl).await?)
    });
    let issued = issued.map_err(|error| {
        let is_expired = error.code() == Code::ClientCertificate;
        let error = error.context("no certificate was issued");
        match is_expired {
            true => error.hint("with --from-secrets a secrets bundle issues it"),
            false => error,
        }
    })?;
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes)
            .map_err(|_| Error::new(Code::Failed, "the node issued what is not PEM"))
    };
    Ok(Pem {
        ca: text(issued.ca)?,
        crt: text(issued.crt)?,
        key: text(issued.key)?,
    })
}

/// Tries the new certificate.
fn verify(
    session: &mut Session,
    config: &TalosConfig,
    name: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let look = named(session)?;
    let mut options = look.options;
    options.security = Options::from_context(config, Some(name), now)?.security;
    // A certificate of a node whose clock is ahead is not valid here yet.
    options.now = Timestamp::now();
    session.runtime()?.run(async {
        let client = Client::new(options)?;
        first(&client, &look.nodes).version().await?;
        Ok(())
    })
}

/// The way to the nodes of `-n`; without it no node is named.
fn named(session: &mut Session) -> Result<Look, Error> {
    session.look(|choice| {
        Ok(match choice.named.is_empty() {
            true => Vec::new(),
            false => choice.to_read()?,
        })
    })
}

fn first(client: &Client, nodes: &[String]) -> Node {
    match nodes.first() {
        Some(name) => client.node(name),
        None => client.endpoint(),
    }
}
