//! The databases that were enrolled from this state directory, and what other clients did in them since.
//!
//! Whoever looks at the history or takes something back first takes up what others wrote. A server that cannot be asked is
//! told and does not stop anybody.

use std::ffi::OsString;
use std::time::Duration;

use backout_engine::{Context, Engine, EngineError};
use backout_model::{AgentId, Operation, OperationId};
use backout_remote::rows::{Act, Foreign, Kind, Place, RowsError, RowsRequest, connect};
use backout_storage::{Database, databases, write_databases};

use crate::failure::Failure;
use crate::session::Session;
use crate::state_dir::state_dir;

/// How long a server may take to answer when somebody only wants to look at the history.
const ON_THE_WAY: Duration = Duration::from_secs(2);

/// The variable by which programs of `PostgreSQL` get settings of a session.
const PGOPTIONS: &str = "PGOPTIONS";

impl Session {
    /// Lists the databases that were enrolled.
    pub(crate) fn databases(&self) -> Result<Vec<Database>, Failure> {
        let directory = state_dir(self.global.state_dir.as_deref())?;
        Ok(databases(&directory).map_err(EngineError::from)?)
    }

    /// Finds an enrolled database by its name or its URL.
    pub(crate) fn database(&self, name: &str) -> Result<Option<Database>, Failure> {
        let all = self.databases()?;
        let url = backout_remote::secret::without_password(name);
        let mut each = all.into_iter();
        Ok(each.find(|it| it.name == name || it.url == url))
    }

    /// Remembers a database, in the place of one that is the same or has the same name.
    pub(crate) fn remember(&self, place: &Place) -> Result<(), Failure> {
        let directory = state_dir(self.global.state_dir.as_deref())?;
        let mut all = self.databases()?;
        all.retain(|it| it.id != place.id && it.name != place.name);
        all.push(Database {
            name: place.name.clone(),
            id: place.id.clone(),
            url: place.url.clone(),
        });
        Ok(write_databases(&directory, &all).map_err(EngineError::from)?)
    }

    /// Forgets a database.
    pub(crate) fn forget(&self, id: &str) -> Result<(), Failure> {
        let directory = state_dir(self.global.state_dir.as_deref())?;
        let mut all = self.databases()?;
        all.retain(|it| it.id != id);
        Ok(write_databases(&directory, &all).map_err(EngineError::from)?)
    }

    /// Gives the variables by which a command hands its operation on to a database: those end with its name.
    pub(crate) fn database_variables(&self) -> Vec<(OsString, OsString)> {
        let all = self.databases().unwrap_or_default();
        let is_postgres = |it: &Database| Kind::of(&it.url) == Some(Kind::Postgres);
        if !all.iter().any(is_postgres) {
            return Vec::new();
        }
        let guest = self.asked.as_ref();
        let before = match guest {
            Some(guest) => {
                let mut each = guest.environment.iter();
                let found = each.find(|(name, _)| name == PGOPTIONS);
                found.map(|(_, value)| value.clone())
            }
            None => std::env::var_os(PGOPTIONS),
        };
        let mut options = before.unwrap_or_default();
        if !options.is_empty() {
            options.push(" ");
        }
        if let Some(agent) = &self.agent {
            options.push(format!("-c backout.agent={agent} "));
        }
        options.push("-c backout.operation=");
        vec![(PGOPTIONS.into(), options)]
    }

    /// Takes up what other clients did in all databases, and says which could not be asked.
    pub(crate) fn sync_databases(&mut self) {
        let all = self.databases().unwrap_or_default();
        for database in &all {
            if let Err(failure) = self.sync_database(database, ON_THE_WAY) {
                let why = said(failure);
                let name = &database.name;
                self.ui.note(&format!(
                    "what other clients did in {name} is not known now: {why}"
                ));
            }
        }
    }

    /// Takes up what other clients did in a database. Gives the operations.
    pub(crate) fn sync_database(
        &mut self,
        database: &Database,
        within: Duration,
    ) -> Result<Vec<OperationId>, Failure> {
        let mut connection = connect(&database.url, within).map_err(driver)?;
        let place = connection.identity().map_err(driver)?;
        let foreign = connection.foreign().map_err(driver)?;
        drop(connection);
        if foreign.is_empty() {
            return Ok(Vec::new());
        }
        let needs_no_store = std::mem::replace(&mut self.needs_no_store, false);
        let engine = self.engine();
        self.needs_no_store = needs_no_store;
        let engine = engine?;
        let each = foreign.into_iter();
        let taken = each.map(|it| take_up(&engine, &place, it));
        let taken: Result<Vec<Option<OperationId>>, EngineError> = taken.collect();
        self.tell_recovered(&engine);
        Ok(taken?.into_iter().flatten().collect())
    }

    /// Lets go of what the logs of all databases hold for operations that are not kept any more.
    pub(crate) fn prune_databases(&mut self) {
        let all = self.databases().unwrap_or_default();
        for database in &all {
            if let Err(failure) = self.prune_database(database) {
                let (name, why) = (&database.name, said(failure));
                let note = format!("the log of {name} could not be pruned now: {why}");
                self.ui.note(&note);
            }
        }
    }

    /// Lets go of what the log of a database holds for operations that are not kept any more.
    pub(crate) fn prune_database(&mut self, database: &Database) -> Result<u64, Failure> {
        let engine = self.engine()?;
        let mut connection = connect(&database.url, ON_THE_WAY).map_err(driver)?;
        let mut gone = Vec::new();
        for name in connection.marked().map_err(driver)? {
            let Ok(id) = name.parse::<OperationId>() else {
                continue;
            };
            // One that another journal knows is none of ours to let go of.
            if operation(&engine, id)?.is_some_and(|it| !it.retained) {
                gone.push(name);
            }
        }
        if gone.is_empty() {
            return Ok(0);
        }
        connection.prune(&gone).map_err(driver)
    }
}

fn operation(engine: &Engine, id: OperationId) -> Result<Option<Operation>, EngineError> {
    Ok(engine.store().operation(id)?)
}

/// Makes one transaction of another client an operation.
fn take_up(
    engine: &Engine,
    place: &Place,
    foreign: Foreign,
) -> Result<Option<OperationId>, EngineError> {
    let within = foreign.operation.as_deref().and_then(|it| it.parse().ok());
    let within = match within {
        Some(id) => operation(engine, id)?.map(|it| it.id),
        None => None,
    };
    let actor = foreign.actor.replace(
        |it: char| !it.is_ascii_alphanumeric() && !"._-:/@".contains(it),
        "-",
    );
    let context = Context {
        agent: actor.parse::<AgentId>().ok(),
        within,
        ..Context::default()
    };
    let Foreign { xact, summary, .. } = foreign;
    let request = RowsRequest::new(place.clone(), None, Act::Adopt { xact, summary });
    Ok(engine.for_caller(context).write(&request)?.id)
}

/// Says what a database said.
pub(crate) fn driver(error: RowsError) -> Failure {
    Failure::Engine(EngineError::Driver(error.into()))
}

fn said(failure: Failure) -> String {
    match failure {
        Failure::Engine(error) => error.to_string(),
        Failure::Report(report) => report.what,
        Failure::Shown(_) => String::new(),
    }
}
