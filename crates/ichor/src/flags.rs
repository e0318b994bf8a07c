//! Flags that behave as users of Go programs expect, each also settable from the environment as `ICHOR_<FLAG>`.

use std::ffi::{OsStr, OsString};

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::env::Env;
use crate::values;

/// What every environment variable that sets a flag begins with.
const PREFIX: &str = "ICHOR_";

/// Gives a command and all below it Go's flag rules: `--flag=false` for booleans, the last of several values wins, and
/// the word after a flag is its value even when it begins with a hyphen.
pub(crate) fn go_style(command: Command) -> Command {
    command
        .args_override_self(true)
        .mut_args(go_flag)
        .mut_subcommands(go_style)
}

fn go_flag(arg: Arg) -> Arg {
    if arg.get_long().is_none() {
        return arg;
    }
    match arg.get_action() {
        ArgAction::SetTrue => {
            let unset = arg.get_default_values().is_empty();
            let arg = arg
                .action(ArgAction::Set)
                .value_parser(ValueParser::new(values::boolean))
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .hide_possible_values(true)
                .value_name("BOOL");
            if unset {
                arg.default_value("false").hide_default_value(true)
            } else {
                arg
            }
        }
        ArgAction::Set | ArgAction::Append => arg.allow_hyphen_values(true),
        _ => arg,
    }
}

/// Returns the variable that sets a flag.
pub(crate) fn variable(long: &str) -> String {
    format!("{PREFIX}{}", long.to_uppercase().replace('-', "_"))
}

/// Parses a command line, taking flags that it does not give from the environment.
pub(crate) fn parse(
    command: Command,
    args: &[OsString],
    env: &Env,
) -> Result<ArgMatches, clap::Error> {
    if env.with_prefix(PREFIX).next().is_none() {
        return command.try_get_matches_from(args);
    }
    let given = match command.clone().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) if error.kind() == clap::error::ErrorKind::MissingRequiredArgument => command
            .clone()
            .ignore_errors(true)
            .try_get_matches_from(args)?,
        Err(error) => return Err(error),
    };
    let mut extra = Vec::new();
    let mut command = command;
    command.build();
    from_environment(&command, &given, env, &mut extra);
    let end = args
        .iter()
        .position(|arg| arg == "--")
        .unwrap_or(args.len());
    let mut extended = args[..end].to_vec();
    extended.extend(extra);
    extended.extend_from_slice(&args[end..]);
    command.try_get_matches_from(extended)
}

/// Collects `--flag=value` words for the flags of the chosen command that only the environment sets.
fn from_environment(command: &Command, given: &ArgMatches, env: &Env, extra: &mut Vec<OsString>) {
    if let Some((name, below)) = given.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return from_environment(command, below, env, extra);
    }
    for arg in command.get_arguments() {
        let Some(long) = arg.get_long() else { continue };
        let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let on_command_line =
            given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        if !takes_value || on_command_line {
            continue;
        }
        if let Some(value) = env.path(&variable(long)) {
            let mut word = OsString::from(format!("--{long}="));
            word.push(value.as_os_str());
            extra.push(word);
        }
    }
}

/// Guesses from raw words whether JSON output was asked for, for errors that come before parsing has succeeded.
pub(crate) fn wants_json(args: &[OsString]) -> bool {
    let is_json = |value: &OsStr| value == "json" || value == "ndjson";
    args.iter().enumerate().any(|(index, arg)| {
        let Some(text) = arg.to_str() else {
            return false;
        };
        match text {
            "-o" | "--output" | "--format" => args.get(index + 1).is_some_and(|next| is_json(next)),
            _ => ["--output=", "--format=", "-o=", "-o"]
                .iter()
                .find_map(|prefix| text.strip_prefix(prefix))
                .is_some_and(|value| is_json(OsStr::new(value))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        go_style(
            Command::new("ichor")
                .arg(
                    Arg::new("nodes")
                        .short('n')
                        .long("nodes")
                        .global(true)
                        .action(ArgAction::Append)
                        .value_delimiter(','),
                )
                .subcommand(
                    Command::new("logs")
                        .arg(
                            Arg::new("follow")
                                .short('f')
                                .long("follow")
                                .action(ArgAction::SetTrue),
                        )
                        .arg(
                            Arg::new("kubernetes")
                                .short('k')
                                .long("kubernetes")
                                .action(ArgAction::SetTrue),
                        )
                        .arg(
                            Arg::new("tail")
                                .long("tail")
                                .value_parser(clap::value_parser!(i32))
                                .default_value("-1"),
                        )
                        .arg(
                            Arg::new("wait")
                                .long("wait")
                                .action(ArgAction::SetTrue)
                                .default_value("true"),
                        )
                        .arg(Arg::new("service").required(true)),
                ),
        )
    }

    fn parsed(line: &str, variables: &[(&str, &str)]) -> String {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let env = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        let matches = match parse(command(), &args, &env) {
            Ok(matches) => matches,
            Err(error) => return format!("{:?}", error.kind()),
        };
        let (_, logs) = matches.subcommand().unwrap();
        let nodes: Vec<&String> = logs.get_many("nodes").unwrap_or_default().collect();
        format!(
            "{nodes:?} f={} k={} wait={} tail={}",
            logs.get_flag("follow"),
            logs.get_flag("kubernetes"),
            logs.get_flag("wait"),
            logs.get_one::<i32>("tail").unwrap()
        )
    }

    #[test]
    fn flags_follow_the_rules_of_go() {
        let none: &[(&str, &str)] = &[];
        assert_eq!(
            parsed("ichor -n a,b logs x -fk --tail -5", none),
            r#"["a", "b"] f=true k=true wait=true tail=-5"#
        );
        assert_eq!(
            parsed("ichor logs -n a --nodes=b x -f=false", none),
            r#"["a", "b"] f=false k=false wait=true tail=-1"#
        );
        assert_eq!(
            parsed("ichor logs x --wait=0 --follow --follow=F", none),
            "[] f=false k=false wait=false tail=-1"
        );
        assert_eq!(parsed("ichor logs x --wait=maybe", none), "ValueValidation");
        assert_eq!(parsed("ichor logs", none), "MissingRequiredArgument");
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_default() {
        let set = &[
            ("ICHOR_TAIL", "7"),
            ("ICHOR_NODES", "x,y"),
            ("ICHOR_FOLLOW", "true"),
            ("ICHOR_WAIT", "false"),
        ];
        assert_eq!(
            parsed("ichor logs s", set),
            r#"["x", "y"] f=true k=false wait=false tail=7"#
        );
        assert_eq!(
            parsed("ichor -n a logs s --tail 3 -f=false", set),
            r#"["a"] f=false k=false wait=false tail=3"#
        );
        assert_eq!(
            parsed("ichor logs -- s", set),
            r#"["x", "y"] f=true k=false wait=false tail=7"#
        );
        assert_eq!(
            parsed("ichor logs s", &[("ICHOR_TAIL", "many")]),
            "ValueValidation"
        );
        assert_eq!(parsed("ichor logs", set), "MissingRequiredArgument");
        assert_eq!(
            parsed("ichor logs s", &[("ICHOR_TAIL", "")]),
            "[] f=false k=false wait=true tail=-1"
        );
    }

    #[test]
    fn json_is_recognized_before_parsing() {
        let check = |line: &str, expected: bool| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(wants_json(&args), expected, "{line}");
        };
        check("ichor get x -o json --bad", true);
        check("ichor get x -ojson", true);
        check("ichor get x --output=ndjson", true);
        check("ichor get x -o", false);
        check("ichor get x -o yaml", false);
    }
}
