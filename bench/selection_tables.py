"""The tables of bench/selection.py, in Markdown: each from the rows of one result file."""


def markdown(head: list, rows: list) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def size(count: float) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count:g} B"


def micros(statistics: dict) -> str:
    value = statistics["median"]
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def ratio(statistics: dict) -> str:
    return f"{statistics['median']:.3f} [{statistics['low']:.3f} - {statistics['high']:.3f}]"


def in_order(values) -> list:
    return list(dict.fromkeys(values))


def allreduce(rows: list) -> str:
    """In place alone: out of place is a copy more."""
    rows = [row for row in rows if row["in_place"] and not row.get("plain_loops")]
    found = {(row["bytes"], row["backend"], row["memory"]): row for row in rows}
    columns = in_order((row["backend"], row["memory"]) for row in rows)
    lines = []
    for count in in_order(row["bytes"] for row in rows):
        of_size = [found[count, *column] for column in columns]
        versus = found[count, "shm", "group"]["ratios"].get("gloo")
        beside_loops = [f"{row['x_plain_loops']['median']:.2f}" if "x_plain_loops" in row else "-" for row in of_size if row["backend"] == "shm"]
        lines.append([size(count), *(f"{micros(row['time_us'])} ({row['busbw_GBps']:.1f})" for row in of_size), " / ".join(beside_loops), ratio(versus) if versus else "-"])
    names = {"group": "in place", "plain": "staged"}
    head = [f"{backend}, {names[memory]}" if backend != "gloo" else "Gloo" for backend, memory in columns]
    return "Microseconds (busbw, GB/s), medians.\n\n" + markdown(["size", *head, "in place / staged, x plain loops", "Gloo / shm in place"], lines)


def bucket_terms(rows: list) -> str:
    """A line for each bucket and number of parameters: with copies / with views."""
    rows = [row for row in rows if row["what"] == "terms"]
    found = {(row["bytes"], row["parameters"], row["gradients"]): row for row in rows}
    lines = []
    for count, parameters in in_order((row["bytes"], row["parameters"]) for row in rows):
        of_both = [found[count, parameters, gradients] for gradients in ("copies", "views")]
        of_copies = of_both[0]["terms_us"]
        both = [" / ".join(micros(row["terms_us"][term]) for row in of_both) for term in ("numbers", "flags", "launch", "reduce")]
        lines.append([size(count), parameters, micros(of_copies["flatten"]), *both, micros(of_copies["copy_out"]),
                      *(" / ".join(micros(row[term]) for row in of_both) for term in ("sum_us", "time_us"))])
    head = ["bucket", "parameters", "flatten", "numbers", "flags", "launch", "reduce", "copy-out", "sum", "together"]
    return "Microseconds, medians: gradients as copies / as views of the bucket. Flatten and copy-out are 0 for views.\n\n" + markdown(head, lines)


def bucket_overlap(rows: list) -> str:
    lines = [[size(row["cap"]), row["buckets"], f"{row['time_us']['median'] / 1000:.1f}", f"{row['best_us'] / 1000:.1f}", f"{100 * row['overlap']:.0f} %",
              f"{100 * row['best_overlap']:.0f} %", row["decides"]] for row in rows if row["what"] == "overlap"]
    return markdown(["cap", "buckets", "backward, ms", "best, ms", "hidden", "best hidden", "decided by"], lines)


def ddp_modes(rows: list) -> str:
    """A line for each mode, a column for each model."""
    found = {(row["model"], row["mode"]): row for row in rows}
    models = in_order(row["model"] for row in rows)

    def cell(row: dict) -> str:
        ratios = [f"{row['ratios'][other]['median']:.3f}" if other in row["ratios"] else "-" for other in ("local", "strict")]
        hidden = f"{100 * row['overlap']:.0f}" if row.get("overlap") is not None else "-"
        return f"{row['step_ms']['median']:.2f} ({ratios[0]}, {ratios[1]}, {hidden})"

    def buckets(model: str) -> str:
        of_mode = {row["mode"]: row["buckets"] for row in rows if row["model"] == model and row["buckets"]}
        usual = max(of_mode.values(), key=list(of_mode.values()).count, default="-")
        return ", ".join([str(usual), *(f"{mode} {count}" for mode, count in of_mode.items() if count != usual)])

    lines = [[mode, *(cell(found[model, mode]) if (model, mode) in found else "-" for model in models)] for mode in in_order(row["mode"] for row in rows)]
    lines.append(["buckets", *(buckets(model) for model in models)])
    lines.append(["noise", *(f"{100 * max(row['noise'] for row in rows if row['model'] == model):.1f} %" for model in models)])
    return "Step in ms (x no DDP, x strict, hidden in %), medians; the JSON of the command has the quartiles.\n\n" + markdown(["mode", *models], lines)


def caps(rows: list) -> str:
    """A line for each cap, a column for each model."""
    found = {(row["model"], row["mode"]): row for row in rows}
    models = in_order(row["model"] for row in rows)

    def cell(row: dict) -> str:
        if row["mode"] == "local":
            return f"{row['step_ms']['median']:.1f}"
        parts = ", ".join(f"{row[term]['median']:.1f}" for term in ("compute_ms", "comm_ms", "reducing_ms"))
        return f"{row['step_ms']['median']:.1f} ({row['ratios']['local']['median']:.3f}, {row['buckets']}, {100 * row['overlap']:.0f}; {parts})"

    lines = []
    for mode in in_order(row["mode"] for row in rows):
        name = "no DDP" if mode == "local" else mode.removeprefix("cap").replace("inf", "none")
        lines.append([name, *(cell(found[model, mode]) if (model, mode) in found else "-" for model in models)])
    most = {term: max((row[term]["median"] for row in rows if row["mode"] != "local"), default=0) for term in ("waiting_ms", "placing_ms")}
    return ("Step in ms (x no DDP, buckets, hidden in %; backward, on the way and reducing in ms), medians; the JSON of the command\n"
            f"has the quartiles. Waiting takes at most {most['waiting_ms']:.1f} ms, the rest {most['placing_ms']:.1f} ms.\n\n"
            + markdown(["cap, MiB", *models], lines))


def diagnosis(rows: list) -> str:
    lines = [[f"{row['layers']} blocks of width {row['width']}", row["mode"], f"{row['step_ms']['median']:.2f}", ratio(row["ratios"]["off"]) if "off" in row["ratios"] else "1",
              f"{row['collectives_per_step']:g}", f"{row['bytes_per_step'] / 1024:,.0f}"] for row in rows]
    return markdown(["model", "diagnosis", "step, ms", "x off [middle half]", "collectives per step", "KiB per step"], lines)


def half_types(rows: list) -> str:
    found = {row["case"]: row for row in rows}
    lines = []
    for case in in_order(row["case"].removesuffix(" float32") for row in rows if row["case"].endswith(" 4096x1024 float32")):
        line = [case.removesuffix(" 4096x1024"), micros(found[f"{case} float32"]["time_us"])]
        for dtype in ("float16", "bfloat16"):
            row = found[f"{case} {dtype}"]
            line.append(f"{micros(row['time_us'])} ({ratio(row['ratio'])})")
        lines.append(line)
    return "Microseconds for 4,194,304 elements; in brackets the ratio to float32 in the same rounds.\n\n" + markdown(["operation", "float32", "float16", "bfloat16"], lines)


# Name: (result file, how it is drawn).
TABLES = {
    "allreduce": ("allreduce", allreduce),
    "bucket-terms": ("bucket-terms", bucket_terms),
    "bucket-overlap": ("bucket-overlap", bucket_overlap),
    "bucket-overlap-small": ("bucket-overlap-small", bucket_overlap),
    "ddp": ("ddp", ddp_modes),
    "caps": ("caps", caps),
    "diagnosis": ("diagnosis", diagnosis),
    "half-types": ("half-types", half_types),
}
