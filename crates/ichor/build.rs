//! Stamps the program with the revision it is built from and the platform it is built for.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=ICHOR_BUILD_REVISION");
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && std::path::Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let revision = std::env::var("ICHOR_BUILD_REVISION")
        .ok()
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]))
        .unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=ICHOR_REVISION={revision}");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=ICHOR_TARGET={target}");
}

/// Runs git here; a build outside a repository has no revision.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
