//! Descriptions of the operations about the service itself.

use crate::api::openapi::description::{Content, Description};
use crate::api::operations::{DocumentForm, HealthForm, InfoForm};

use Content::{Data, Empty, Json, Text, Yaml};

const GROUP: &str = "Service";

/// The description of an answer with the release.
pub(crate) fn info(form: InfoForm) -> Description {
    let (id, content) = match form {
        InfoForm::Hybrid => ("v2GetInfo", Json("ServerInfoHybrid")),
        InfoForm::Wrapped => ("getInfo", Data("ServerInfoWithConfig")),
        InfoForm::Release => ("paymentsgetServerInfo", Json("ServerRelease")),
        InfoForm::Bare => ("getBareInfo", Json("ServerInfo")),
    };
    Description::new(id, GROUP, "The release of the API").answers(200, "The release", content)
}

/// The description of a health check. The path tells several of one form apart.
pub(crate) fn health(form: HealthForm) -> Description {
    let (id, summary) = match form {
        HealthForm::Alive => ("isAlive", "Whether the process answers"),
        HealthForm::Checks => ("getHealth", "Whether the store works"),
        HealthForm::Ready => ("isReady", "Whether the store works, for load balancers"),
    };
    let description = Description::new(id, GROUP, summary).answers(200, "It does", Json("Health"));
    match form {
        HealthForm::Alive => description,
        HealthForm::Checks => description.answers(500, "It does not", Json("Health")),
        HealthForm::Ready => description.answers(503, "It does not", Json("Health")),
    }
}

/// The description of the list of services.
pub(crate) fn versions() -> Description {
    Description::new("getVersions", GROUP, "The services with their releases").answers(
        200,
        "The services",
        Json("Versions"),
    )
}

/// The description of a form of this document.
pub(crate) fn document(form: DocumentForm) -> Description {
    let (id, content) = match form {
        DocumentForm::Json => ("getOpenapiJson", Json("OpenApi")),
        DocumentForm::Yaml => ("getOpenapiYaml", Yaml("OpenApi")),
        DocumentForm::Page => ("getOpenapiPage", Text("text/html; charset=utf-8")),
        DocumentForm::Link => {
            let text = "The way to the description of this API for people";
            return Description::new("getRoot", GROUP, text).answers(303, "The page is at `/docs`", Empty);
        }
    };
    Description::new(id, GROUP, "The description of this API").answers(200, "The description", content)
}
