//! Any talosconfig and kubeconfig is read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use talos_config::kubeconfig::Kubeconfig;
use talos_config::talosconfig::TalosConfig;

fuzz_target!(|text: &str| {
    if let Ok(config) = TalosConfig::parse("fuzz", text) {
        let names: Vec<&String> = config.contexts().keys().collect();
        for name in names {
            let _ = config.credentials(name);
        }
        let _ = config.select(None);
    }
    if let Ok(config) = Kubeconfig::parse("fuzz", text) {
        let _ = config.access(None);
    }
});
