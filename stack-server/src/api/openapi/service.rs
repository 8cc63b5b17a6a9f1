//! Descriptions of the operations about the service itself.

use crate::api::openapi::description::{Content, Description};
use crate::api::operations::{DocumentForm, HealthForm, InfoForm};

use Content::{Data, Empty, Json, Text, Yaml};

const GROUP: &str = "Service";

/// Returns the description of an operation that returns the release.
pub(crate) fn info(form: InfoForm) -> Description {
    let (id, content) = match form {
        InfoForm::Hybrid => ("v2GetInfo", Json("ServerInfoHybrid")),
        InfoForm::Wrapped => ("getInfo", Data("ServerInfoWithConfig")),
        InfoForm::Release => ("paymentsgetServerInfo", Json("ServerRelease")),
        InfoForm::Bare => ("getBareInfo", Json("ServerInfo")),
    };
    Description::new(id, GROUP, "The release of the API")
        .details(
            "Answers the release whose clients are served. With tokens, the configuration names ledgers only \
             to a caller that may read them.",
        )
        .answers(200, "The release", content)
}

/// Returns the description of a health check. The path distinguishes several checks with the same form.
pub(crate) fn health(form: HealthForm) -> Description {
    let (id, summary, details) = match form {
        HealthForm::Alive => (
            "isAlive",
            "Whether the process answers",
            "Answers an empty object as long as the process runs, whatever the state of the store.",
        ),
        HealthForm::Checks => (
            "getHealth",
            "Whether the store works",
            "Answers `OK` while the store takes writes, and the reason with status 500 once it does not.",
        ),
        HealthForm::Ready => (
            "isReady",
            "Whether the store works, for load balancers",
            "Answers `OK` while the store takes writes, and the reason with status 503 once it does not, so \
             that a load balancer turns elsewhere.",
        ),
    };
    let description =
        Description::new(id, GROUP, summary).details(details).answers(200, "It does", Json("Health"));
    match form {
        HealthForm::Alive => description,
        HealthForm::Checks => description.answers(500, "It does not", Json("Health")),
        HealthForm::Ready => description.answers(503, "It does not", Json("Health")),
    }
}

/// Returns the description of the list of services.
pub(crate) fn versions() -> Description {
    Description::new("getVersions", GROUP, "The services with their releases")
        .details(
            "Answers each service that this server stands for, with its release and whether it takes writes.",
        )
        .answers(200, "The services", Json("Versions"))
}

/// Returns the description of an operation that returns this document.
pub(crate) fn document(form: DocumentForm) -> Description {
    let (id, content, details) = match form {
        DocumentForm::Json => (
            "getOpenapiJson",
            Json("OpenApi"),
            "Answers this document as JSON: every operation of every service below every prefix.",
        ),
        DocumentForm::Yaml => (
            "getOpenapiYaml",
            Yaml("OpenApi"),
            "Answers this document as YAML, with the same members as the JSON form.",
        ),
        DocumentForm::Page => (
            "getOpenapiPage",
            Text("text/html; charset=utf-8"),
            "Answers a page that loads this document and shows it, without a request to any other server.",
        ),
        DocumentForm::Link => {
            let text = "The way to the description of this API for people";
            return Description::new("getRoot", GROUP, text)
                .details("Redirects a browser to the page that shows this document.")
                .answers(303, "The page is at `/docs`", Empty);
        }
    };
    Description::new(id, GROUP, "The description of this API").details(details).answers(
        200,
        "The description",
        content,
    )
}
