//! Requests to the payments API of a server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failure;
use crate::http_client::Connection;
use crate::http_load::refused;

/// A client of the payments API with one connection.
#[derive(Debug)]
pub struct Api {
    connection: Connection,
}

impl Api {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// Fails if the connection fails.
    pub async fn connect(address: &str) -> Result<Self, Failure> {
        Ok(Self { connection: Connection::connect(address).await? })
    }

    /// Sends a request and parses the JSON of its answer. Returns `null` if the answer is not JSON.
    ///
    /// # Errors
    ///
    /// Fails if the connection fails, or the status is not a success.
    pub async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Value, Failure> {
        let (answer, _) = self.timed_answer(method, path, body).await?;
        Ok(serde_json::from_slice(answer).unwrap_or(Value::Null))
    }

    /// Sends a request and returns the time until the answer is complete.
    ///
    /// # Errors
    ///
    /// Fails if the connection fails, or the status is not a success.
    pub async fn timed(&mut self, method: &str, path: &str, body: &str) -> Result<Duration, Failure> {
        self.timed_answer(method, path, body).await.map(|(_, took)| took)
    }

    /// Sends a request and returns the answer's body and the time until the answer is complete.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Api::timed`].
    pub async fn timed_answer(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(&[u8], Duration), Failure> {
        let request = request(method, path, body);
        let begin = Instant::now();
        let answer = self.connection.exchange(request.as_bytes()).await?;
        let took = begin.elapsed();
        if !(200..300).contains(&answer.status) {
            return Err(refused(answer.status, answer.body));
        }
        Ok((answer.body, took))
    }

    /// Installs a GENERIC connector and returns its id.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses it.
    pub async fn install(&mut self, name: &str, endpoint: &str, period: &str) -> Result<String, Failure> {
        let config = json!({"name": name, "apiKey": "key", "endpoint": endpoint, "pollingPeriod": period});
        let answer = self.ask("POST", "/api/payments/connectors/GENERIC", &config.to_string()).await?;
        let id = answer["data"]["connectorID"].as_str();
        Ok(id.ok_or("an installation without an id")?.to_owned())
    }

    /// Removes a connector with everything that it has ingested.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses it.
    pub async fn uninstall(&mut self, connector: &str) -> Result<(), Failure> {
        self.ask("DELETE", &format!("/api/payments/connectors/GENERIC/{connector}"), "").await.map(drop)
    }

    /// Waits until the newest payment of the server has this creation date. There is no time limit.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses the list, or a task of the connector has failed.
    pub async fn wait_for_payment(&mut self, connector: &str, date: &str) -> Result<(), Failure> {
        for number in 1_u64.. {
            let newest = self.ask("GET", "/api/payments/payments?pageSize=1&sort=date:desc", "").await?;
            if newest["cursor"]["data"][0]["createdAt"] == date {
                break;
            }
            if number.is_multiple_of(100) {
                self.check_tasks(connector).await?;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Checks that no task of a connector reports an error.
    async fn check_tasks(&mut self, connector: &str) -> Result<(), Failure> {
        let path = format!("/api/payments/connectors/GENERIC/{connector}/tasks?pageSize=100");
        let tasks = self.ask("GET", &path, "").await?;
        let tasks = tasks["cursor"]["data"].as_array().ok_or("no list of tasks")?;
        match tasks.iter().find(|task| task["error"].as_str().is_some_and(|error| !error.is_empty())) {
            None => Ok(()),
            Some(task) => Err(format!("a task failed: {task}").into()),
        }
    }
}

fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// Escapes a value in the query of a path.
pub(super) fn escape(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    escaped.collect()
}
