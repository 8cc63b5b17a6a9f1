//! The descriptions of the v2 operations on exporters and pipelines.

use crate::api::openapi::description::{Body, Content, Description};
use crate::api::openapi::parameters::JSON;
use crate::api::operations::V2;
use crate::http::error::Code;

use Code::{LedgerNotFound, NotFound, Validation};
use Content::{Data, Empty, Json};

const PIPELINES: &str = "Pipelines";

const EXPORTER: Body = Body { required: true, contents: &[(JSON, Json("V2CreateExporterRequest"))] };

/// Returns the description of an operation on exporters or pipelines.
pub(super) fn describe(operation: V2) -> Description {
    let new = Description::new;
    match operation {
        V2::ListExporters => {
            new("v2ListExporters", PIPELINES, "Lists exporters; only with --experimental-exporters")
                .details("Answers all exporters of the server, in a single page.")
                .answers(200, "All of them", Json("V2ExportersResponse"))
        }
        V2::CreateExporter => new("v2CreateExporter", PIPELINES, "Creates an exporter")
            .details(
                "Checks the driver and its configuration, stores the exporter and answers it with its new \
                 id. Nothing is sent before a pipeline uses it.",
            )
            .takes(EXPORTER)
            .answers(201, "The exporter", Data("V2Exporter"))
            .refuses(&[Validation]),
        V2::ReadExporter => new("v2GetExporterState", PIPELINES, "Reads an exporter")
            .details(
                "Answers one exporter with its configuration, in which passwords and tokens of addresses \
                 are masked.",
            )
            .answers(200, "The exporter", Data("V2Exporter"))
            .refuses(&[Validation, NotFound]),
        V2::UpdateExporter => new("v2UpdateExporter", PIPELINES, "Changes an exporter")
            .details(
                "Replaces the configuration of an exporter. Its pipelines use the new configuration from \
                 then on.",
            )
            .takes(EXPORTER)
            .answers(204, "It is changed", Empty)
            .refuses(&[Validation, NotFound]),
        V2::DeleteExporter => new("v2DeleteExporter", PIPELINES, "Removes an exporter")
            .details("Deletes an exporter together with its pipelines, in one write.")
            .answers(204, "It is not there", Empty)
            .refuses(&[Validation, NotFound]),
        V2::ListPipelines => new("v2ListPipelines", PIPELINES, "Lists the pipelines of a ledger")
            .details("Answers all pipelines of the ledger with their state, in a single page.")
            .answers(200, "All of them", Json("V2PipelinesResponse"))
            .refuses(&[LedgerNotFound]),
        V2::CreatePipeline => new("v2CreatePipeline", PIPELINES, "Connects a ledger to an exporter")
            .details(
                "Creates a pipeline that sends the logs of the ledger to the exporter, from the first log \
                 on, and starts it.",
            )
            .takes(Body { required: true, contents: &[(JSON, Json("V2CreatePipelineRequest"))] })
            .answers(201, "The pipeline, which runs", Data("V2Pipeline"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ReadPipeline => new("v2GetPipelineState", PIPELINES, "Reads a pipeline")
            .details("Answers one pipeline with the last log that it delivered, and its error if it has one.")
            .answers(200, "The pipeline", Data("V2Pipeline"))
            .refuses(&[Validation, NotFound, LedgerNotFound]),
        V2::DeletePipeline => new("v2DeletePipeline", PIPELINES, "Removes a pipeline")
            .details("Stops the pipeline and deletes it with its position. The exporter stays.")
            .answers(204, "It is not there", Empty)
            .refuses(&[Validation, NotFound, LedgerNotFound]),
        V2::StartPipeline => new("v2StartPipeline", PIPELINES, "Starts a pipeline that is stopped")
            .details("Lets the pipeline go on behind the last log that it delivered.")
            .answers(202, "It runs", Empty)
            .refuses(&[Validation, NotFound, LedgerNotFound]),
        V2::StopPipeline => new("v2StopPipeline", PIPELINES, "Stops a pipeline")
            .details("Lets the pipeline end its delivery and keep its position, from which a start goes on.")
            .answers(202, "It does not run", Empty)
            .refuses(&[Validation, NotFound, LedgerNotFound]),
        _ => new("v2ResetPipeline", PIPELINES, "Has a pipeline begin again at the first log")
            .details("Sets the position back to the beginning, so that every log is delivered again.")
            .answers(202, "It begins again", Empty)
            .refuses(&[Validation, NotFound, LedgerNotFound]),
    }
}
