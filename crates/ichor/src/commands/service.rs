//! `ichor service`: the services of nodes.

use clap::ValueEnum;
use jiff::Timestamp;
use serde::Serialize;
use talos_client::{Health, Service, ServiceAction};

use crate::error::{Code, Error, Outcome};
use crate::output::{Output, OutputArgs, columns};
use crate::report::{report, report_table};
use crate::session::Session;
use crate::times::ago;

/// Show services of nodes; start, stop or restart one
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The service; without one, all are listed
    id: Option<String>,
    /// What to do with it
    #[arg(value_enum, default_value = "status")]
    action: Action,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    Status,
    Start,
    Stop,
    Restart,
}

/// A service of a node.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceData {
    /// Name of the service.
    id: String,
    /// Its state, such as `Running`.
    state: String,
    /// What its health check says; null before the first check, or if there is none.
    healthy: Option<bool>,
    /// What the last check said.
    health_message: String,
    /// When the health last changed.
    #[schemars(with = "Option<String>")]
    health_changed: Option<Timestamp>,
    /// What happened to it lately, oldest first.
    events: Vec<EventData>,
}

/// Something that happened to a service.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventData {
    /// The state it came into.
    state: String,
    /// Why.
    message: String,
    /// When.
    #[schemars(with = "Option<String>")]
    time: Option<Timestamp>,
}

/// What a node said when a service was started, stopped or restarted.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Driven {
    /// The node's words.
    message: String,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let action = match args.action {
        Action::Status => return show(args.id.as_deref(), session),
        Action::Start => ServiceAction::Start,
        Action::Stop => ServiceAction::Stop,
        Action::Restart => ServiceAction::Restart,
    };
    let id = args.id.unwrap_or_default();
    let target = session.changing(&format!("{} {id}", name(args.action)))?;
    let results = session.change_each(&target, async |node| {
        let message = node.drive_service(&id, action).await?;
        Ok(Driven { message })
    })?;
    report(&mut session.output, &results, |output, answered| {
        for (node, driven) in answered {
            output.line(&format!("{node}: {}", driven.message.trim_end()))?;
        }
        Ok(())
    })
}

fn show(id: Option<&str>, session: &mut Session) -> Result<Outcome, Error> {
    let target = session.reading()?;
    let results = session.runtime()?.run(async {
        Ok(target
            .each(async |node| {
                let services = node.services().await?;
                let chosen: Vec<ServiceData> = services
                    .into_iter()
                    .filter(|service| id.is_none_or(|id| service.id == id))
                    .map(ServiceData::from)
                    .collect();
                match id {
                    Some(id) if chosen.is_empty() => Err(Error::new(
                        Code::NotFound,
                        format!("there is no service {id:?}"),
                    )
                    .hint("`ichor service` lists the services")),
                    _ => Ok(chosen),
                }
            })
            .await)
    })?;
    let now = Timestamp::now();
    if id.is_some() {
        return report(&mut session.output, &results, |output, answered| {
            answered
                .iter()
                .flat_map(|(node, services)| services.iter().map(move |service| (node, service)))
                .try_for_each(|(node, service)| show_one(output, node, service, now))
        });
    }
    let table = columns([
        "NODE",
        "SERVICE",
        "STATE",
        "HEALTH",
        "LAST CHANGE",
        "LAST EVENT",
    ]);
    report_table(
        &mut session.output,
        &results,
        table,
        |table, node, services| {
            for service in services {
                let last = service.events.last();
                let changed = last.and_then(|event| event.time);
                table.add_row([
                    node,
                    &service.id,
                    &service.state,
                    service.health(),
                    &changed.map(|time| ago(time, now)).unwrap_or_default(),
                    last.map(|event| event.message.as_str()).unwrap_or_default(),
                ]);
            }
        },
    )
}

fn show_one(
    output: &mut Output,
    node: &str,
    service: &ServiceData,
    now: Timestamp,
) -> Result<(), Error> {
    output.line(&format!("NODE     {node}"))?;
    output.line(&format!("ID       {}", service.id))?;
    output.line(&format!("STATE    {}", service.state))?;
    output.line(&format!("HEALTH   {}", service.health()))?;
    if !service.health_message.is_empty() {
        output.line(&format!("LAST HEALTH MESSAGE   {}", service.health_message))?;
    }
    for (index, event) in service.events.iter().rev().enumerate() {
        let label = if index == 0 { "EVENTS" } else { "" };
        let time = event.time.map(|time| ago(time, now)).unwrap_or_default();
        output.line(&format!(
            "{label:<6}   [{}]: {} ({time})",
            event.state, event.message
        ))?;
    }
    Ok(())
}

fn name(action: Action) -> &'static str {
    match action {
        Action::Status => "status",
        Action::Start => "start",
        Action::Stop => "stop",
        Action::Restart => "restart",
    }
}

impl ServiceData {
    fn health(&self) -> &'static str {
        match self.healthy {
            Some(true) => "OK",
            Some(false) => "Fail",
            None => "?",
        }
    }
}

impl From<Service> for ServiceData {
    fn from(service: Service) -> Self {
        let Health {
            healthy,
            message,
            changed,
        } = service.health;
        let events = service.events.into_iter();
        Self {
            id: service.id,
            state: service.state,
            healthy,
            health_message: message,
            health_changed: changed,
            events: events
                .map(|event| EventData {
                    state: event.state,
                    message: event.message,
                    time: event.time,
                })
                .collect(),
        }
    }
}
