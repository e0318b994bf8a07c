//! Where generated files go, and what stays if they cannot go there.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{BUNDLE, CONFIG, config, files, home, read};
use crate::cli::program::{Home, Ran};

/// Starts `gen` twice at once and tells how both ended.
fn twice(home: &Home, args: &[&str]) -> [Ran; 2] {
    let start = || {
        let mut command = home.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    [start(), start()].map(|child| child.wait_with_output().unwrap().into())
}

/// Asserts that a certificate and the key beside it belong together, and that nothing else is in the folder.
fn check_pair(home: &Home) {
    assert_eq!(files(home.path()), ["o.crt", "o.key"]);
    talos_pki::Authority::from_pem(read(home, "o.crt"), read(home, "o.key")).unwrap();
}

#[test]
fn of_two_runs_at_once_one_makes_all_files_and_the_other_none() {
    for _ in 0..10 {
        let home = Home::new();
        let mut ran = twice(&home, &["gen", "keypair", "--organization", "o"]);
        ran.sort_by_key(|ran| ran.code);
        assert_eq!(ran.each_ref().map(|ran| ran.code), [Some(0), Some(5)]);
        assert_eq!(ran[0].stderr, "Created o.crt\nCreated o.key\n");
        assert!(ran[1].stderr.contains("\"o.crt\""), "{ran:?}");
        assert!(ran[1].stderr.contains("already exist"), "{ran:?}");
        check_pair(&home);
    }
}

#[test]
fn two_runs_at_once_that_may_overwrite_never_mix_their_files() {
    let home = Home::new();
    for _ in 0..10 {
        let ran = twice(&home, &["gen", "keypair", "--organization", "o", "--force"]);
        assert_eq!(ran.map(|ran| ran.code), [Some(0); 2]);
        check_pair(&home);
    }
}

/// A run of `gen config --force` over old files that waits, with two of three files in place, for a reader of the pipe
/// `out/talosconfig`.
fn waiting(home: &Home) -> Child {
    for name in ["controlplane.yaml", "worker.yaml"] {
        home.file(&format!("out/{name}"), "before\n");
    }
    make_pipe(&home.path().join("out/talosconfig"));
    let args = ["--with-secrets", "secrets.yaml", "-o", "out", "--force"];
    let mut command = home.command(&[&CONFIG[..], &args].concat());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "out/talosconfig is a pipe: waiting for somebody to read it\n"
    );
    assert!(read(home, "out/worker.yaml").contains("type: worker"));
    child.stderr = Some(stderr.into_inner());
    child
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_run_that_is_interrupted_brings_the_former_files_back() {
    let home = home();
    let mut child = waiting(&home);
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut stderr = String::new();
    child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "error: interrupted\n");
    assert_eq!(
        files(&home.path().join("out")),
        ["controlplane.yaml", "talosconfig", "worker.yaml"]
    );
    for name in ["out/controlplane.yaml", "out/worker.yaml"] {
        assert_eq!(read(&home, name), "before\n");
    }
}

#[test]
fn what_a_killed_run_leaves_tells_what_it_is() {
    let home = home();
    let mut child = waiting(&home);
    child.kill().unwrap();
    child.wait().unwrap();
    let out = home.path().join("out");
    std::fs::remove_file(out.join("talosconfig")).unwrap();
    home.file("out/.worker.yaml.ichor-new-stale", "half a fi");
    let left = files(&out);
    let [control_plane, stale, worker, ..] = &left[..] else {
        panic!("{left:?}");
    };
    assert!(control_plane.starts_with(".controlplane.yaml.ichor-old-"));
    assert!(worker.starts_with(".worker.yaml.ichor-old-"), "{left:?}");
    assert_eq!(stale, ".worker.yaml.ichor-new-stale");
    let ran = config(&home, &["-o", "out", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr,
        format!(
            "warning: a run that replaced out/controlplane.yaml was killed: out/{control_plane} holds what was there before\n\
             warning: a run that replaced out/worker.yaml was killed: out/{worker} holds what was there before\n\
             Created out/controlplane.yaml\nCreated out/worker.yaml\nCreated out/talosconfig\n"
        )
    );
    for name in [control_plane, worker] {
        assert_eq!(read(&home, &format!("out/{name}")), "before\n");
    }
    // What was only half written is gone, what may be somebody's only copy is not.
    assert_eq!(
        files(&out),
        [
            control_plane,
            worker,
            "controlplane.yaml",
            "talosconfig",
            "worker.yaml"
        ]
    );
}

#[test]
fn a_pipe_gets_the_text_once_somebody_reads_it() {
    for force in [&[][..], &["--force"]] {
        let home = Home::new();
        let pipe = home.path().join("pipe");
        make_pipe(&pipe);
        let args = ["gen", "secrets", "-o", "pipe"];
        let mut command = home.command(&[&args, force].concat());
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let text = std::fs::read_to_string(&pipe).unwrap();
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.ends_with("Created pipe\n"), "{ran:?}");
        let secrets = talos_config::generate::Secrets::read(&text).unwrap();
        assert_eq!(secrets.text(), text);
        let kind = std::fs::metadata(&pipe).unwrap().file_type();
        assert!(kind.is_fifo());
        assert_eq!(files(home.path()), ["pipe"]);
    }
}

/// Runs `gen secrets` in a shell, with the bundle taken out of a config so that the text is known.
fn shell(home: &Home, rest: &str) -> Ran {
    let line = format!("\"$ICHOR\" gen secrets --from-controlplane-config cp.yaml {rest}");
    let mut command = Command::new("sh");
    command
        .args(["-c", &line])
        .env("ICHOR", env!("CARGO_BIN_EXE_ichor"))
        .env("HOME", home.path())
        .current_dir(home.path());
    command.output().unwrap().into()
}

#[test]
fn standard_output_and_open_descriptors_are_never_replaced() {
    let home = home();
    config(&home, &["-t", "controlplane", "-o", "cp.yaml"]);
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let ran = shell(&home, &format!("-o {name}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), BUNDLE), "{name}");
        assert_eq!(ran.stderr, "", "{name}");
    }
    for (place, descriptor) in [
        ("/dev/stdout", "1"),
        ("/dev/fd/7", "7"),
        ("/dev/stderr", "2"),
    ] {
        home.file("log", "first\n");
        let ran = shell(&home, &format!("-o {place} {descriptor}>>log"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let log = read(&home, "log");
        assert!(log.starts_with(&format!("first\n{BUNDLE}")), "{place}");
    }
}

#[test]
fn links_stay_links_and_what_they_lead_to_is_not_lost() {
    let home = home();
    std::fs::create_dir(home.path().join("real")).unwrap();
    symlink("real/worker.yaml", home.path().join("w.yaml")).unwrap();
    // The link leads nowhere yet.
    let ran = config(&home, &["-t", "worker", "-o", "w.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.path().join("w.yaml").is_symlink());
    assert!(read(&home, "real/worker.yaml").contains("type: worker"));
    home.file("real/worker.yaml", "mine\n");
    let ran = config(&home, &["-t", "worker", "-o", "w.yaml"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(read(&home, "real/worker.yaml"), "mine\n");
    let ran = config(&home, &["-t", "worker", "-o", "w.yaml", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.path().join("w.yaml").is_symlink());
    assert!(read(&home, "real/worker.yaml").contains("type: worker"));
    assert_eq!(files(&home.path().join("real")), ["worker.yaml"]);
}

#[test]
fn places_that_cannot_hold_a_file_are_refused_with_the_reason() {
    let home = home();
    let path = |name: &str| home.path().join(name);
    std::fs::create_dir_all(path("folder/talosconfig")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    symlink("round", path("round")).unwrap();
    std::fs::create_dir(path("twins")).unwrap();
    symlink("worker.yaml", path("twins/controlplane.yaml")).unwrap();
    home.file("file", "");
    let before = files(home.path());
    let check = |args: &[&str], code: i32, expected: &[&str]| {
        for force in [&[][..], &["--force"]] {
            let ran = config(&home, &[args, force].concat());
            assert_eq!(ran.code, Some(code), "{ran:?}");
            for expected in expected {
                assert!(ran.stderr.contains(expected), "{expected}: {ran:?}");
            }
            assert_eq!(files(home.path()), before, "{args:?}");
        }
    };
    let worker = |place| ["-t", "worker", "-o", place];
    check(
        &worker("folder"),
        2,
        &["\"folder\" is a folder, not a file"],
    );
    check(
        &["-o", "folder"],
        2,
        &["\"folder/talosconfig\" is a folder, not a file"],
    );
    assert_eq!(files(&path("folder")), ["talosconfig"]);
    check(
        &worker("socket"),
        1,
        &["failed to write socket", "it is a socket"],
    );
    check(&worker("round"), 1, &["failed to write round", "links"]);
    check(&worker("file/below"), 1, &["failed to write file/below"]);
    check(
        &worker("/proc/w.yaml"),
        1,
        &["failed to write /proc/w.yaml"],
    );
    check(
        &["-o", "twins"],
        2,
        &["twins/controlplane.yaml and twins/worker.yaml are the same file"],
    );
    assert_eq!(files(&path("twins")), ["controlplane.yaml"]);
    check(
        &worker("/dev/full"),
        1,
        &["failed to write /dev/full", "No space left on device"],
    );
    // Neither files nor folders stay of a set whose last member cannot be written.
    symlink("/dev/full", path("twins/talosconfig")).unwrap();
    std::fs::remove_file(path("twins/controlplane.yaml")).unwrap();
    check(&["-o", "twins"], 1, &["failed to write twins/talosconfig"]);
    assert_eq!(files(&path("twins")), ["talosconfig"]);
    check(&worker("/proc/none/w.yaml"), 1, &["failed to write"]);
}
