//! The program `ichor`.

fn main() -> std::process::ExitCode {
    ichor::run(
        std::env::args_os(),
        ichor::Env::of_process(),
        ichor::Io::of_process(),
    )
}
