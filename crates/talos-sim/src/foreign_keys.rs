//! Client certificates for keys that were made elsewhere.

use jiff::SignedDuration;
use talos_pki::{Certificate, LeafRequest, LeafUsage, PrivateKey};

use crate::Cluster;

impl Cluster {
    /// Signs a client certificate with these roles, good for a year, for a key of any kind.
    pub fn sign_client(&self, roles: &[&str], key: &PrivateKey) -> Certificate {
        let request = LeafRequest {
            common_name: None,
            organizations: roles.iter().map(|&role| role.to_owned()).collect(),
            names: Vec::new(),
            usage: LeafUsage {
                key_encipherment: false,
                server: false,
                client: true,
            },
            lifetime: SignedDuration::from_hours(8760),
            backdate: SignedDuration::ZERO,
        };
        let trust = self.shared.current_trust();
        let authority = trust.talos.signer.as_ref();
        let authority = authority.expect("a control plane has the key of its authority");
        let signed = authority.sign_leaf(&request, key.public_key_info(), self.shared.now());
        signed.expect("a key in memory signs")
    }
}
