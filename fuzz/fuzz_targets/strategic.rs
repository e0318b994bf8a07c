//! Any strategic merge patch of any configuration is applied or refused; the two texts are parted by a zero byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use talos_config::Schema;
use talos_config::patch::{Patch, apply};
use talos_config::yaml::Stream;

fuzz_target!(|text: &str| {
    let Some((config, patch)) = text.split_once('\0') else {
        return;
    };
    let Ok(patch) = Patch::parse(patch) else {
        return;
    };
    for version in ["1.11", "1.14"] {
        if let Ok(patched) = apply(config, &[patch.clone()], Schema::for_talos(version)) {
            Stream::parse(&patched.text).expect("a patched text is read again");
        }
    }
});
