//! The inventory: every certificate once, with all places it was seen at, who issued it, and who renews it.

mod renewal;

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use talos_pki::{Certificate, is_issued_by};

use crate::evidence::{Place, RequestSeen};
use crate::report::CertificateSummary;
use crate::{Evidence, NotChecked, Outcome, Source};

pub use renewal::Renewal;
use renewal::{Use, renewal};

/// Every certificate that was found, those that end first coming first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// The moment that times are counted from, in RFC 3339.
    pub time: String,
    /// The certificates.
    pub certificates: Vec<Listed>,
    /// Requests for certificates that Kubernetes holds.
    pub requests: Vec<ListedRequest>,
    /// What could not be looked at.
    pub not_checked: Vec<NotChecked>,
    /// Whether something could not be looked at, so that a certificate may be missing here.
    pub incomplete: bool,
}

/// One certificate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// What it is for, such as `apid` or `Talos CA`.
    pub purpose: String,
    /// What it says about itself.
    pub certificate: CertificateSummary,
    /// Whether it is an authority.
    pub authority: bool,
    /// Where it was seen.
    pub places: Vec<ListedPlace>,
    /// Which known authority issued it; absent when none of them did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issued_by: Option<IssuedBy>,
    /// Whether it is valid now.
    pub validity: Validity,
    /// Seconds until it ends; negative when it has ended.
    pub seconds_left: i64,
    /// Who renews it and when.
    pub renewal: Renewal,
}

/// One place where a certificate was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedPlace {
    /// Node, as the user named it; absent when it belongs to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What kind of place it is.
    pub source: InventorySource,
    /// What it is for there.
    pub purpose: String,
    /// The place: an address, a resource, a file or an object.
    pub place: String,
    /// How the connection went, for what a server presents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<Outcome>,
}

/// A kind of place for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InventorySource {
    /// A server presents it.
    Servers,
    /// A node's resources hold it.
    Resources,
    /// Kubernetes holds it.
    Kubernetes,
    /// A file holds it.
    Files,
}

impl InventorySource {
    /// Every kind of place.
    pub const ALL: [Self; 4] = [
        Self::Servers,
        Self::Resources,
        Self::Kubernetes,
        Self::Files,
    ];

    /// Returns the word that stands in reports and on command lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Resources => "resources",
            Self::Kubernetes => "kubernetes",
            Self::Files => "files",
        }
    }
}

/// The authority that issued a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuedBy {
    /// What the authority is, such as `Kubernetes CA`; `itself` for a certificate that is self-signed.
    pub name: String,
    /// SHA-256 of its certificate in hex.
    pub fingerprint: String,
}

/// Whether a certificate is valid at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// It is valid.
    Valid,
    /// It has ended.
    Expired,
    /// It has not begun.
    NotYetValid,
}

impl Validity {
    /// Tells the validity of a certificate.
    pub fn of(certificate: &Certificate, now: Timestamp) -> Self {
        match () {
            () if now < certificate.not_before() => Self::NotYetValid,
            () if now > certificate.not_after() => Self::Expired,
            () => Self::Valid,
        }
    }
}

/// A request for a certificate that Kubernetes holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedRequest {
    /// Name of the object.
    pub name: String,
    /// What came of it: pending, approved, denied, failed or issued.
    pub state: String,
    /// Who is to sign it.
    pub signer: String,
    /// Who asked.
    pub requester: String,
    /// Subject that was asked for.
    pub subject: String,
    /// Names that were asked for.
    pub names: Vec<String>,
    /// When it was made, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
}

/// Lists everything that was seen, at a given time.
pub fn list(evidence: &Evidence, now: Timestamp) -> Inventory {
    let groups = groups(evidence);
    let authorities = Authorities::of(&groups, evidence);
    let mut listed: Vec<(&Certificate, Listed)> = groups
        .iter()
        .map(|group| (group.certificate, group.listed(&authorities, now)))
        .collect();
    listed.sort_by(|(one, first), (other, second)| {
        let key = |certificate: &Certificate| certificate.not_after();
        key(one)
            .cmp(&key(other))
            .then_with(|| first.purpose.cmp(&second.purpose))
            .then_with(|| {
                first
                    .places
                    .first()
                    .map(|place| &place.node)
                    .cmp(&second.places.first().map(|place| &place.node))
            })
            .then_with(|| {
                first
                    .certificate
                    .fingerprint
                    .cmp(&second.certificate.fingerprint)
            })
    });
    Inventory {
        time: now.to_string(),
        certificates: listed.into_iter().map(|(_, listed)| listed).collect(),
        requests: evidence.requests.iter().map(request).collect(),
        not_checked: evidence.not_checked.clone(),
        incomplete: !evidence.not_checked.is_empty(),
    }
}

impl Inventory {
    /// Keeps the certificates that end within a time; those that have ended are kept too.
    pub fn keep_expiring(&mut self, within: SignedDuration) {
        self.certificates
            .retain(|listed| listed.seconds_left <= within.as_secs());
    }
}

/// One certificate with every place where it was seen, the most telling place first.
struct Group<'a> {
    certificate: &'a Certificate,
    uses: Vec<Use<'a>>,
}

fn groups(evidence: &Evidence) -> Vec<Group<'_>> {
    let mut known: HashMap<&[u8], usize> = HashMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut add = |certificate, used| {
        let index = *known
            .entry(Certificate::der(certificate))
            .or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.uses.push(used),
            None => groups.push(Group {
                certificate,
                uses: vec![used],
            }),
        }
    };
    for seen in &evidence.servers {
        for (position, certificate) in seen.chain.iter().enumerate() {
            add(certificate, Use::Served(seen, position));
        }
    }
    for kept in &evidence.kept {
        add(&kept.certificate, Use::Kept(kept));
    }
    for client in &evidence.clients {
        add(&client.certificate, Use::Client(client));
    }
    for group in &mut groups {
        group.uses.sort_by_key(Use::rank);
    }
    groups
}

impl Group<'_> {
    fn purpose(&self) -> String {
        let first = self.uses.first();
        first.map(|used| used.purpose()).unwrap_or_default()
    }

    fn listed(&self, authorities: &Authorities<'_>, now: Timestamp) -> Listed {
        let certificate = self.certificate;
        let issued_by = authorities.issuer_of(certificate);
        let mut places: Vec<ListedPlace> = Vec::new();
        for place in self.uses.iter().map(place) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Listed {
            purpose: self.purpose(),
            certificate: CertificateSummary::of(certificate),
            authority: certificate.is_ca(),
            places,
            renewal: renewal(certificate, &self.uses, issued_by.as_ref()),
            issued_by,
            validity: Validity::of(certificate, now),
            seconds_left: certificate.not_after().duration_since(now).as_secs(),
        }
    }
}

fn place(used: &Use<'_>) -> ListedPlace {
    let purpose = used.purpose();
    match used {
        Use::Served(seen, _) => ListedPlace {
            node: Some(seen.node.clone()),
            source: match seen.source {
                Source::Served => InventorySource::Servers,
                Source::Resource => InventorySource::Resources,
            },
            purpose,
            place: match (&seen.address, seen.source) {
                (Some(address), _) => address.clone(),
                (None, Source::Served) => "served".to_owned(),
                (None, Source::Resource) => match &seen.connection {
                    Some(Outcome::Failed(failure)) => {
                        format!("the node's resources; the server was not seen: {failure}")
                    }
                    _ => "the node's resources".to_owned(),
                },
            },
            connection: seen.connection.clone(),
        },
        Use::Kept(kept) => ListedPlace {
            node: kept.node.clone(),
            source: match kept.place {
                Place::Resource { .. } => InventorySource::Resources,
                Place::File { .. } => InventorySource::Files,
                Place::Kubernetes { .. } => InventorySource::Kubernetes,
            },
            purpose,
            place: kept.place.to_string(),
            connection: None,
        },
        Use::Client(client) => ListedPlace {
            node: None,
            source: InventorySource::Files,
            purpose,
            place: client.place.clone(),
            connection: None,
        },
    }
}

/// Every authority that is known, by its subject.
struct Authorities<'a>(HashMap<&'a str, Vec<(&'a Certificate, String)>>);

impl<'a> Authorities<'a> {
    fn of(groups: &[Group<'a>], evidence: &'a Evidence) -> Self {
        let mut known = Self(HashMap::new());
        let seen = groups.iter().filter(|group| group.certificate.is_ca());
        for group in seen {
            let purpose = group.purpose();
            let name = match purpose.as_str() {
                // A file that does not say which authority it is.
                "certificate authority" if !group.certificate.subject().is_empty() => {
                    group.certificate.subject()
                }
                purpose => purpose.strip_prefix("accepted ").unwrap_or(purpose),
            };
            known.add(group.certificate, name);
        }
        let lists = [
            (&evidence.talos_authorities, "Talos CA"),
            (&evidence.kubernetes_authorities, "Kubernetes CA"),
            (&evidence.etcd_authorities, "etcd CA"),
        ];
        for (list, name) in lists {
            for certificate in list {
                known.add(certificate, name);
            }
        }
        known
    }

    fn add(&mut self, certificate: &'a Certificate, name: &str) {
        let list = self.0.entry(certificate.subject()).or_default();
        if !list.iter().any(|(known, _)| *known == certificate) {
            list.push((certificate, name.to_owned()));
        }
    }

    /// Finds who issued a certificate: by key identifier and signature, for names may be empty or the same.
    fn issuer_of(&self, certificate: &Certificate) -> Option<IssuedBy> {
        if certificate.is_self_issued() && is_issued_by(certificate, certificate) {
            return Some(IssuedBy {
                name: "itself".to_owned(),
                fingerprint: certificate.fingerprint(),
            });
        }
        let candidates = self.0.get(certificate.issuer())?;
        let found = candidates
            .iter()
            .find(|(candidate, _)| candidate.is_ca() && is_issued_by(certificate, candidate));
        found.map(|(authority, name)| IssuedBy {
            name: name.clone(),
            fingerprint: authority.fingerprint(),
        })
    }
}

fn request(seen: &RequestSeen) -> ListedRequest {
    ListedRequest {
        name: seen.name.clone(),
        state: seen.state.as_str().to_owned(),
        signer: seen.signer.clone(),
        requester: seen.requester.clone(),
        subject: seen.subject.clone(),
        names: seen.names.iter().map(ToString::to_string).collect(),
        created: seen.created.map(|time| time.to_string()),
    }
}

#[cfg(test)]
mod tests;
