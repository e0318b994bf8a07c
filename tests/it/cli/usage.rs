//! What is known before any connection: help, usage errors, and a talosconfig that cannot be used.

use std::process::Stdio;

use super::program::Home;

#[test]
fn a_wrong_command_line_exits_2_and_names_the_flag() {
    let home = Home::new();
    let check = |args: &[&str], named: &str| {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(named), "{args:?}: {ran:?}");
    };
    check(&["nosuchverb"], "nosuchverb");
    check(&["get", "members", "--nosuchflag"], "--nosuchflag");
    check(&["get"], "TYPE");
    check(&["get", "members", "-o", "xml"], "xml");
    check(&["--connect-timeout", "soon", "get", "members"], "soon");
    check(&["--concurrency", "0", "get", "members"], "--concurrency");
    check(&["reboot", "--wait=perhaps"], "perhaps");
}

#[test]
fn a_wrong_command_line_is_an_object_when_json_is_wanted() {
    let ran = Home::new().run(&["get", "-o", "json", "--nosuchflag"]);
    assert_eq!(ran.code, Some(2));
    let error = ran.error();
    assert_eq!(error["code"], "usage");
    assert_eq!(error["message"], "unexpected argument '--nosuchflag' found");
}

#[test]
fn the_version_of_the_program_needs_no_cluster() {
    let ran = Home::new().run(&["version", "--client", "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let client = &ran.json()["client"];
    assert_eq!(client["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(client["supported"]["talos"]["min"], "1.11");
    assert_eq!(client["supported"]["kubernetes"]["max"], "1.37");
    assert!(!client["revision"].as_str().unwrap().is_empty());
}

#[test]
fn completion_scripts_and_manual_pages_come_from_the_definitions() {
    let home = Home::new();
    for shell in ["bash", "fish", "powershell", "zsh"] {
        let ran = home.run(&["completion", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        assert!(ran.stdout.contains("upgrade-k8s"), "{shell}");
    }
    let dir = home.path().join("man");
    let ran = home.run(&["man", "--dir", dir.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = std::fs::read_to_string(dir.join("ichor-get.1")).unwrap();
    assert!(page.contains("jsonpath"), "{page}");
}

#[test]
fn a_new_file_that_is_no_secret_has_the_mode_that_the_umask_leaves() {
    use std::os::unix::fs::PermissionsExt;
    for (umask, mode, folder_mode) in [("027", 0o640, 0o750), ("002", 0o664, 0o775)] {
        let home = Home::new();
        let script = format!("umask {umask} && exec \"$0\" man --dir pages");
        let ran = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_ichor")])
            .env("HOME", home.path())
            .current_dir(home.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let folder = home.path().join("pages");
        for (path, expected) in [(folder.join("ichor.1"), mode), (folder, folder_mode)] {
            let found = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, expected, "{}", path.display());
        }
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let home = Home::new();
    let mut child = home
        .command(&["completion", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
