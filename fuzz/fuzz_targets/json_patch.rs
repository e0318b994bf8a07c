//! Any JSON Patch of a configuration is applied or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use talos_config::Schema;
use talos_config::patch::{Patch, apply};
use talos_config::yaml::Stream;

const CONFIG: &str = "version: v1alpha1 # one\nmachine:\n  type: worker\n  certSANs: [a, b]\n  nodeLabels:\n    a/b: c\n    m~n: d\n  files:\n    - path: /x\n      content: |\n        y\ncluster:\n  network: {}\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n";

fuzz_target!(|text: &str| {
    let Ok(patch) = Patch::parse(text) else {
        return;
    };
    if let Ok(patched) = apply(CONFIG, &[patch], Schema::newest()) {
        Stream::parse(&patched.text).expect("a patched text is read again");
    }
});
