//! Kubernetes upgrades: reaching the API, planning, and carrying plans out on a simulated cluster.

mod cli;
mod lab;
mod reach;
mod refuse;
mod resume;
mod run;
