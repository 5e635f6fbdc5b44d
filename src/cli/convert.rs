//! `memplan convert`: an input in another format.

use memplan::{Input, import::Format, report};

use crate::{
    Failure, Verdict,
    args::ConvertArgs,
    files::{self, wrong},
    later, note,
    planning::placed,
};

pub(crate) fn convert(args: &ConvertArgs) -> Result<Verdict, Failure> {
    let input = later::input(Some(&args.input), &args.reading, &args.later)?;
    let format = files::converted_format(&args.output, &args.input)?;
    files::output("-o", &args.output, args.later.files(), "")?;
    let lowers = args.lower || !args.later.after.is_empty() || format == Format::Csv;
    // The requests of a model are made when it is read.
    let read_already =
        args.reading.inplace_switch().filter(|_| files::is_model(&args.input, &args.reading));
    let switch = args.reading.lowering_switch().filter(|switch| Some(*switch) != read_already);
    let is_sequence = matches!(input, Input::Sequence(_));
    let switch = switch.or(args.placing.switch().filter(|_| is_sequence));
    if let Some(switch) = switch.filter(|_| !lowers) {
        let remedy = "affects only lowering; add --lower or omit it";
        return Err(wrong(None, format!("{switch} {remedy}")));
    }
    match (&input, format) {
        (Input::Sequence(sequence), Format::Json) if !args.lower => {
            files::write(&args.output, |out| report::write_sequence_json(out, sequence))?;
        }
        (_, Format::Csv) => {
            let problem = placed(&input, &args.input, &args.reading, &args.placing)?;
            if let Some(feature) = report::not_in_csv(&problem) {
                let words =
                    format!("CSV cannot express {feature}, which the problem has; use .json");
                return Err(wrong(Some(&args.output), words));
            }
            if problem.has_links() {
                let memory = match problem.links_taken() {
                    1 => "1 chunk that would be written over another gets memory of its own"
                        .to_owned(),
                    links => format!(
                        "{links} chunks that would be written over another get memory of their own"
                    ),
                };
                note(&format!("CSV has no overwrite links; {memory}"));
            }
            let copied = problem.optional_parts().len();
            if copied > 0 {
                let parts = if copied == 1 { "part" } else { "parts" };
                note(&format!(
                    "CSV has no parts; {copied} optional {parts} will lie elsewhere, and be copied"
                ));
            }
            if problem.padding() > 0 {
                note(&format!(
                    "CSV has no padding; add --padding {} when reading the file",
                    problem.padding()
                ));
            }
            files::write(&args.output, |out| report::write_problem_csv(out, &problem))?;
        }
        _ => {
            let problem = placed(&input, &args.input, &args.reading, &args.placing)?;
            files::write(&args.output, |out| report::write_problem_json(out, &problem))?;
            if is_sequence {
                note(&format!("the problem has an alignment of {} B", problem.alignment()));
            }
        }
    }
    Ok(Verdict::Good)
}
