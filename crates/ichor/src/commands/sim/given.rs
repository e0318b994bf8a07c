//! A folder of machine configs for a simulated cluster to boot with.

use std::path::{Path, PathBuf};

use talos_config::machine::MachineConfig;
use talos_config::talosconfig::TalosConfig;
use talos_sim::{BootConfigs, Cluster, TalosVersion};

use super::{configured, talosconfig};
use crate::error::{Code, Error};
use crate::files;

/// What is in the folder.
pub(super) struct Given {
    pub(super) configs: BootConfigs,
    /// The image that installs control planes.
    installer: Option<String>,
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
    let config = MachineConfig::parse(&control_plane).map_err(|error| {
        let path = folder.join("controlplane.yaml");
        Error::of(Code::Invalid, &error).context(format!("{} cannot be read", path.display()))
    })?;
    Ok(Given {
        installer: installer(&config),
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
        let (_, tag) = self.installer.as_ref()?.rsplit_once(':')?;
        TalosVersion::parse(tag)
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

/// Finds the image that installs Talos, whichever document names it.
fn installer(config: &MachineConfig) -> Option<String> {
    let own = config
        .document("UnattendedInstallConfig")
        .and_then(|document| document.pointer("/installer/image"));
    let main = config
        .main()
        .and_then(|main| main.pointer("/machine/install/image"));
    own.or(main)?.as_str().map(str::to_owned)
}
