//! From flags, environment and talosconfig to a client and the nodes to act on.

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use talos_client::{Client, Fingerprint, Node, Options, ProxyRules, Security};
use talos_config::talosconfig::{self, Context, TalosConfig};
use talos_kube::Patience;

use crate::env::TalosconfigPlace;
use crate::error::{Code, Error};
use crate::files;
use crate::nodes::Choice;
use crate::report::NodeResult;
use crate::session::Session;

/// A cluster that can be called, and the nodes of it that the verb acts on.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The nodes, as the user named them.
    pub(crate) nodes: Vec<String>,
    /// The way to them.
    pub(crate) client: Client,
    concurrency: usize,
}

/// A cluster to look at from outside.
#[derive(Debug)]
pub(crate) struct Look {
    /// The nodes, as the user named them.
    pub(crate) nodes: Vec<String>,
    /// Name of the talosconfig's context.
    pub(crate) context: String,
    /// What a client would be made of.
    pub(crate) options: Options,
    /// How many nodes and servers are talked to at the same time.
    pub(crate) concurrency: usize,
}

impl Target {
    /// Calls every node, several at the same time, and returns the answers in the order of the nodes.
    pub(crate) async fn each<T, F>(&self, call: impl Fn(Node) -> F) -> Vec<NodeResult<T>>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let results = self.client.each(&self.nodes, self.concurrency, call).await;
        results
            .into_iter()
            .map(|(name, result)| {
                let result = result.map_err(|error| error.node(&name));
                (name, result)
            })
            .collect()
    }

    /// Returns the first node, which is the only one for verbs that work on one.
    pub(crate) fn only(&self) -> (&str, Node) {
        let name = self.nodes.first().map(String::as_str).unwrap_or_default();
        (name, self.client.node(name))
    }

    /// Returns how many nodes are called at the same time.
    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Returns a handle for each node.
    pub(crate) fn handles(&self) -> impl Iterator<Item = (&str, Node)> {
        self.nodes
            .iter()
            .map(|name| (name.as_str(), self.client.node(name)))
    }
}

impl Session {
    /// Returns the talosconfig that exists and comes first in the search order, or the place where one would be made.
    pub(crate) fn talosconfig_place(&self) -> Result<TalosconfigPlace, Error> {
        let places = self
            .env
            .talosconfig_candidates(self.global.talosconfig.as_deref());
        let found = places.iter().find(|place| place.path.exists());
        found
            .or_else(|| places.iter().find(|place| place.writable))
            .cloned()
            .ok_or_else(|| no_talosconfig(&places))
    }

    /// Reads the talosconfig.
    pub(crate) fn talosconfig(&self) -> Result<TalosConfig, Error> {
        let place = self.talosconfig_place()?;
        if !place.path.exists() {
            let places = self
                .env
                .talosconfig_candidates(self.global.talosconfig.as_deref());
            return Err(no_talosconfig(&places));
        }
        let text = files::read(&place.path)?;
        Ok(TalosConfig::parse(place.path.display().to_string(), &text)?)
    }

    /// Connects to read from nodes: those of `-n`, else the context's.
    pub(crate) fn reading(&mut self) -> Result<Target, Error> {
        self.connect(|choice| choice.to_read())
    }

    /// Connects to read from one node.
    pub(crate) fn reading_one(&mut self, verb: &str) -> Result<Target, Error> {
        self.connect(|choice| crate::nodes::only(choice.to_read()?, verb).map(|node| vec![node]))
    }

    /// Connects to change nodes: those of `-n`, or the context's with `--all-nodes`; says on stderr which.
    pub(crate) fn changing(&mut self, verb: &str) -> Result<Target, Error> {
        // A change without nodes is wrong whatever the talosconfig says.
        if self.global.nodes.is_empty() && !self.global.all_nodes {
            self.choice(&[]).to_change()?;
        }
        let target = self.connect(|choice| choice.to_change())?;
        self.announce(verb, &target.nodes);
        Ok(target)
    }

    /// Connects to change exactly one node; says on stderr which.
    pub(crate) fn changing_one(&mut self, verb: &str) -> Result<Target, Error> {
        if self.global.nodes.is_empty() && !self.global.all_nodes {
            self.choice(&[]).to_change()?;
        }
        let target = self.connect(|choice| {
            crate::nodes::only(choice.to_change()?, verb).map(|node| vec![node])
        })?;
        self.announce(verb, &target.nodes);
        Ok(target)
    }

    /// Says which nodes a verb is about to touch.
    pub(crate) fn announce(&mut self, verb: &str, nodes: &[String]) {
        self.output
            .note(&format!("{verb}: touching {}", nodes.join(", ")));
    }

    /// Connects to nodes in maintenance mode: `-n` names what is dialled, no client certificate is shown, and the server
    /// is accepted by its key's fingerprint, or as it is if none is given. No talosconfig is needed.
    pub(crate) fn maintenance(&mut self, fingerprints: &[String]) -> Result<Target, Error> {
        let nodes = Choice {
            named: &self.global.nodes,
            context: &[],
            all: false,
        }
        .to_read()?;
        let fingerprints = fingerprints
            .iter()
            .map(|text| text.parse::<Fingerprint>())
            .collect::<Result<_, _>>()?;
        let options = Options::new(
            nodes.clone(),
            Security::Maintenance { fingerprints },
            Timestamp::now(),
        );
        Ok(Target {
            nodes,
            client: Client::new(self.complete(options, None)?)?,
            concurrency: self.global.concurrency.get(),
        })
    }

    fn connect(
        &mut self,
        choose: impl FnOnce(Choice<'_>) -> Result<Vec<String>, Error>,
    ) -> Result<Target, Error> {
        let look = self.look(choose)?;
        Ok(Target {
            nodes: look.nodes,
            client: Client::new(look.options)?,
            concurrency: look.concurrency,
        })
    }

    /// Reads what is needed to look at a cluster, whether or not its calls will be answered: a client certificate that has
    /// expired must not hide what servers present.
    pub(crate) fn looking(&mut self) -> Result<Look, Error> {
        self.look(|choice| choice.to_read())
    }

    /// Reads the same for nodes that are chosen in another way.
    pub(crate) fn look(
        &mut self,
        choose: impl FnOnce(Choice<'_>) -> Result<Vec<String>, Error>,
    ) -> Result<Look, Error> {
        let config = self.talosconfig()?;
        let (name, context) = config.select(self.global.context.as_deref())?;
        self.learn(context);
        let nodes = choose(self.choice(&context.nodes))?;
        let mut options = Options::from_context(&config, Some(name), Timestamp::now())?;
        if !self.global.endpoints.is_empty() {
            options.endpoints.clone_from(&self.global.endpoints);
        }
        Ok(Look {
            nodes,
            context: name.to_owned(),
            options: self.complete(options, context.proxy_url.as_deref())?,
            concurrency: self.global.concurrency.get(),
        })
    }

    /// Adds what flags and environment say to the options of a client.
    fn complete(&self, mut options: Options, proxy_url: Option<&str>) -> Result<Options, Error> {
        if let Some(cluster) = &self.global.cluster {
            options.cluster = Some(cluster.clone());
        }
        if proxy_url.is_none() && self.env.either("HTTPS_PROXY", "https_proxy").is_some() {
            options.proxy = self.proxy()?;
        }
        options.connect_timeout = self.global.connect_timeout;
        options.request_timeout = self.global.request_timeout;
        options.system_roots = system_roots;
        Ok(options)
    }

    /// Returns the proxy that the environment names.
    pub(crate) fn proxy(&self) -> Result<ProxyRules, Error> {
        let env = &self.env;
        ProxyRules::from_environment(
            env.either("HTTPS_PROXY", "https_proxy"),
            env.either("NO_PROXY", "no_proxy"),
        )
        .map_err(|error| Error::new(Code::Invalid, "HTTPS_PROXY cannot be used").caused_by(&error))
    }

    /// Returns the time limits of Kubernetes as the flags say them.
    pub(crate) fn patience(&self) -> Patience {
        Patience {
            connect: self.global.connect_timeout,
            request: self.global.request_timeout,
            ..Patience::default()
        }
    }

    fn choice<'a>(&'a self, context: &'a [String]) -> Choice<'a> {
        Choice {
            named: &self.global.nodes,
            context,
            all: self.global.all_nodes,
        }
    }

    /// Has the secrets of a context masked from now on.
    fn learn(&mut self, context: &Context) {
        if let Some(key) = &context.key {
            self.output.learn_secret(key.reveal());
        }
        if let talosconfig::Auth::Basic { password, .. } = &context.auth {
            self.output.learn_secret(password.reveal());
        }
    }
}

/// Reads the authorities that the system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
pub(crate) fn system_roots() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

fn no_talosconfig(places: &[TalosconfigPlace]) -> Error {
    let error = Error::new(Code::Invalid, "there is no talosconfig");
    let error = places.iter().fold(error, |error, place| {
        error.cause(format!(
            "{} ({}) does not exist",
            place.path.display(),
            place.source
        ))
    });
    error.hint(
        "name one with --talosconfig or TALOSCONFIG, or get one from `ichor config merge FILE`",
    )
}
