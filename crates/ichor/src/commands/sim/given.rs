//! A folder of machine configs for a simulated cluster to boot with.

use std::path::{Path, PathBuf};

use talos_config::Schema;
use talos_config::talosconfig::TalosConfig;
use talos_config::yaml::Stream;
use talos_sim::{BootConfigs, Cluster, TalosVersion};

use super::{configured, talosconfig};
use crate::error::{Code, Error};
use crate::files;

/// What is in the folder.
pub(super) struct Given {
    pub(super) configs: BootConfigs,
    /// The Talos version that control planes install.
    installed: Option<String>,
    talosconfig: Option<(PathBuf, String)>,
}

/// Reads the folder; workers need a config only if there are any.
pub(super) fn read(folder: &Path, workers: usize) -> Result<Given, Error> {
    let control_plane = files::read(&folder.join("controlplane.yaml"))?;
    let worker = match workers {
        0 => None,
        _ => Some(files::read(&folder.join("worker.yaml"))?),
    };
    let path = folder.join("talosconfig");
    let talosconfig = match path.exists() {
        true => Some((path.clone(), files::read(&path)?)),
        false => None,
    };
    let parsed = Stream::parse(&control_plane).map_err(|error| {
        let path = folder.join("controlplane.yaml");
        Error::of(Code::Invalid, &error).context(format!("{} cannot be read", path.display()))
    })?;
    Ok(Given {
        installed: Schema::installed(parsed.roots()).map(str::to_owned),
        configs: BootConfigs {
            control_plane,
            worker,
        },
        talosconfig,
    })
}

impl Given {
    /// Returns the version to behave as when the configs' installer decides.
    pub(super) fn talos_version(&self) -> Option<TalosVersion> {
        TalosVersion::parse(self.installed.as_ref()?)
    }

    /// Returns the folder's talosconfig with the cluster's endpoints and nodes; a fresh one if there is none.
    pub(super) fn talosconfig(&self, cluster: &Cluster) -> Result<String, Error> {
        let fresh = talosconfig(cluster)?;
        let Some((path, text)) = &self.talosconfig else {
            return Ok(fresh);
        };
        let fresh = TalosConfig::parse("the simulated cluster's talosconfig", &fresh)?;
        let (_, reached) = fresh.select(None)?;
        let mut config = TalosConfig::parse(path.display().to_string(), text)?;
        let (name, _) = config.select(None)?;
        let name = name.to_owned();
        let trusted = config.credentials(&name)?.authorities;
        let authority = cluster.talos_authority().der();
        if !trusted.iter().any(|trusted| trusted.der() == authority) {
            let message = format!("{} belongs to another cluster", path.display());
            return Err(Error::new(Code::Invalid, message)
                .cause("its authority is not the one of the machine configs beside it"));
        }
        let endpoints = reached.endpoints.clone();
        config.set_endpoints(&name, &endpoints)?;
        config.set_nodes(&name, &configured(cluster))?;
        Ok(config.text().to_owned())
    }
}
