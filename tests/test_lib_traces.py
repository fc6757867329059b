"""Request traces: each layout as its publisher writes it, what is refused and where, and the trace made here."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.fast_forward import simulate
from lib.made_trace import made_requests
from lib.scheduling import Request, continuous
from lib.traces import MADE, Layout, Trace, read_trace, save_trace

OWN = "arrival_ns,prompt_tokens,output_tokens"
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
BURST_GPT = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace.csv"


def read(file: Path, *lines: str) -> Trace:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_trace(file)


def mooncake(**fields: object) -> str:
    return json.dumps({"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]} | fields)


def test_our_own_layout_names_its_columns_in_any_order(file: Path) -> None:
    trace = read(file, "name,output_tokens,arrival_ns,prompt_tokens,cached_prefix_tokens,max_output_tokens",
                 '"a, b",7,5,100,64,', "c,8,6,200,0,9")  # fmt: skip
    assert trace.requests == (
        Request(5, 100, 7, cached_prefix=64, name="a, b"), Request(6, 200, 8, max_output=9, name="c")
    )  # fmt: skip
    assert (trace.layout, trace.notes) == (Layout.OWN, ())


def test_three_columns_of_numbers_need_no_header(file: Path) -> None:
    trace = read(file, "0,374,44", "4314579000,396,109")
    assert trace.requests == (Request(0, 374, 44), Request(4_314_579_000, 396, 109))
    assert trace.layout == Layout.BARE


def test_azure_counts_from_the_first_request_to_the_last_digit(file: Path) -> None:
    lines = "2023-11-16 23:59:59.9999999,374,44", "2023-11-17 00:00:00.0000002,396,109", "2023-11-17 00:00:01,879,55"
    trace = read(file, AZURE, *lines)
    assert [request.arrival_ns for request in trace.requests] == [0, 300, 1_000_000_100]
    assert trace.layout == Layout.AZURE


def test_azure_of_a_later_year_names_the_zone(file: Path) -> None:
    trace = read(file, AZURE, "2024-05-10 00:00:00.009930+00:00,2162,5", "2024-05-10 00:00:00.017335+00:00,2399,6")
    assert [request.arrival_ns for request in trace.requests] == [0, 7_405_000]


def test_burst_gpt_has_seconds_and_failures(file: Path) -> None:
    lines = (
        "5,ChatGPT,472,18,490,Conversation log",
        "45.25,GPT-4,1087,0,1087,API log",
        "118.1,GPT-4,417,276,693,API log",
    )
    trace = read(file, BURST_GPT, *lines)
    assert trace.requests == (Request(5 * 10**9, 472, 18), Request(118_100_000_000, 417, 276))
    assert (trace.layout, trace.left_out) == (Layout.BURST_GPT, 1)
    assert trace.notes == ("Requests without an output, left out: 1.",)


def test_mooncake_is_a_json_object_a_line(file: Path) -> None:
    trace = read(file, mooncake(), mooncake(timestamp=3052, input_length=7322), mooncake(timestamp=3052.000_001_9))
    assert [request.arrival_ns for request in trace.requests] == [0, 3_052_000_000, 3_052_000_001]
    assert trace.requests[1] == Request(3_052_000_000, 7322, 500)
    assert trace.layout == Layout.MOONCAKE


def test_late_lines_are_put_in_order_and_counted(file: Path) -> None:
    trace = read(file, OWN, "30,1,1", "10,2,1", "20,3,1", "30,4,1", "40,5,1")
    assert [request.prompt for request in trace.requests] == [2, 3, 1, 4, 5]
    assert trace.notes == ("Requests that stood behind a later one, put in order of arrival: 2.",)
    assert len(simulate(trace.requests, continuous(2)).finish_ns) == 5


def test_azure_counts_from_the_earliest_even_if_it_stands_last(file: Path) -> None:
    trace = read(file, AZURE, "2023-11-16 18:00:01,1,1", "2023-11-16 17:00:00,9,0", "2023-11-16 18:00:00,2,1")
    assert trace.requests == (Request(0, 2, 1), Request(10**9, 1, 1))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n", ""], ids=repr)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with BOM"])
@pytest.mark.parametrize("lines", [(OWN, "0,5,6"), ("0,5,6",), (mooncake(input_length=5, output_length=6),)], ids=len)
def test_ends_of_lines_and_byte_order_marks_do_not_matter(
    file: Path, end: str, mark: bytes, lines: tuple[str, ...]
) -> None:
    file.write_bytes(mark + (end or "\n").join(lines).encode() + end.encode())
    assert read_trace(str(file)).requests == (Request(0, 5, 6),)


COUNT = "a whole number of at least 0"
REFUSED = {
    "text": ((OWN, "0,1,2", "5,six,7"), "line 3, column 2 (prompt_tokens)", "six", COUNT),
    "a fraction": ((OWN, "0,1,2.0"), "line 2, column 3 (output_tokens)", "2.0", COUNT),
    "a negative": ((OWN, "-1,1,2"), "line 2, column 1 (arrival_ns)", "-1", COUNT),
    "an underscore": ((OWN, "0,1_0,2"), "line 2, column 2 (prompt_tokens)", "1_0", COUNT),
    "other digits": ((OWN, "0,٣,2"), "line 2, column 2 (prompt_tokens)", "٣", COUNT),
    "an empty cell": ((OWN, "0,,2"), "line 2, column 2 (prompt_tokens)", "", COUNT),
    "no prompt": ((OWN, "0,1,0", "", "0,0,2"), "line 4, column 2 (prompt_tokens)", "0", "whole number from 1 to"),
    "too late": ((OWN, f"{2**63},1,2"), "line 2, column 1 (arrival_ns)", str(2**63), f"from 0 to {2**63 - 1:,}"),
    "no int at all": ((OWN, f"{'9' * 5000},1,2"), "line 2, column 1 (arrival_ns)", "9" * 5000, COUNT),
    "a huge prompt": ((OWN, f"0,{2**60},2"), "line 2, column 2 (prompt_tokens)", str(2**60), "whole number from 1 to"),
    "more than declared": ((OWN + ",max_output_tokens", "0,1,9,8"), "line 2, column 3 (output_tokens)", "9", "1 to 8"),
    "all cached": ((OWN + ",cached_prefix_tokens", "0,4,9,4"), "line 2, column 4 (cached_prefix_tokens)", "4", "to 3"),
    "a missing cell": ((OWN, "0,1,2", "0,1"), "line 3, column 3", "2 cells", "3 cells, as in the first line"),
    "a cell too many": ((OWN, "0,1,2,3"), "line 2, column 4", "4 cells", "3 cells, as in the first line"),
    "an unknown column": ((OWN + ",model", "0,1,2,x"), "line 1, column 4", "model", "one of arrival_ns, prompt_tokens"),
    "a column twice": ((AZURE + ",TIMESTAMP", "a,1,2,b"), "line 1, column 4", "TIMESTAMP", "no column before it has"),
    "another layout": (("when,in,out", "0,1,2"), "line 1, column 1", "when,in,out", AZURE),
    "text behind numbers": (("0,1,2", "5,1,x"), "line 2, column 3 (output_tokens)", "x", COUNT),
    "an open quote": ((OWN, '"0,1,2', "0,1,2"), "line 2", '"0,1,2', "comma-separated values"),
    "an open quote in a name": ((OWN + ",name", '0,1,2,"a', "1,1,2,b"), "line 2", '0,1,2,"a', "comma-separated values"),
    "a quote inside a number": ((OWN, '0,"5"5,3'), "line 2", '0,"5"5,3', "comma-separated values"),
    "a cell beyond reason": ((OWN, "0" * 200_000 + ",1,2"), "line 2, column 1 (arrival_ns)", "0000", COUNT),
    "a title in capitals": ((OWN.replace("output", "Output"), "0,1,2"), "line 1, column 3", "arrival_ns,prompt", AZURE),
    "a title too few": (("arrival_ns,prompt_tokens", "0,1"), "line 1, column 3", "arrival_ns,prompt", AZURE),
    "no such date": ((AZURE, "2023-02-30 18:15:46.1,1,2"), "line 2, column 1 (TIMESTAMP)", "2023-02-30", "a date"),
    "no date": ((AZURE, "18:15:46.1,1,2"), "line 2, column 1 (TIMESTAMP)", "18:15:46.1", "a date and time such as"),
    "60 seconds": ((AZURE, "2023-11-16 18:15:60,1,2"), "line 2, column 1 (TIMESTAMP)", "2023-11-16", "a date"),
    "ages apart": (
        (AZURE, "0001-01-01 00:00:00,1,2", "9999-01-01 00:00:00,1,2"),
        "line 3, column 1 (TIMESTAMP)", "315", f"from 0 to {2**63 - 1:,}",
    ),
    "scientific seconds": ((BURST_GPT, "1e3,m,1,2,3,l"), "line 2, column 1 (Timestamp)", "1e3", "seconds such as"),
    "odd decimals": ((BURST_GPT, "1.123456789x,m,1,2,3,l"), "line 2, column 1 (Timestamp)", "1.12", "seconds such as"),
    "no seconds": ((BURST_GPT, "nan,m,1,2,3,l"), "line 2, column 1 (Timestamp)", "nan", "seconds such as"),
    "a missing key": ((mooncake(), '{"timestamp": 1, "input_length": 2}'), 'line 2, "output_length"', "None", COUNT),
    "true": ((mooncake(input_length=True),), 'line 1, "input_length"', "True", COUNT),
    "tokens as text": ((mooncake(output_length="5"),), 'line 1, "output_length"', "5", COUNT),
    "minus one token": ((mooncake(output_length=-1),), 'line 1, "output_length"', "-1", COUNT),
    "before the start": ((mooncake(timestamp=-0.5),), 'line 1, "timestamp"', "", "milliseconds from 0 on"),
    "NaN": (("", mooncake(timestamp=float("nan"))), 'line 2, "timestamp"', "", "milliseconds from 0 on"),
    "true time": ((mooncake(timestamp=True),), 'line 1, "timestamp"', "True", "milliseconds from 0 on"),
    "late milliseconds": ((mooncake(timestamp=2**62),), 'line 1, "timestamp"', str(2**62 * 10**6), "from 0 to"),
    "no JSON": ((mooncake(), '{"timestamp" 1}'), "line 2, column 14", '{"timestamp" 1}', "one JSON object a line"),
    "a list in JSON": ((mooncake(), "[1, 2]"), "line 2", "[1, 2]", "one JSON object a line"),
    "too deep": ((mooncake(), "[" * 200_000), "line 2", "", "one JSON object a line"),
    "an endless exponent": (('{"timestamp": 1e-99999999999999999999}',), "line 1", "", "one JSON object a line"),
    "an endless number": (('{"timestamp": ' + "9" * 5000 + "}",), "line 1", "", "one JSON object a line"),
    "nothing": ((), "trace.csv", "an empty file", "at least one request"),
    "a header alone": ((OWN,), "trace.csv", "a file without requests", "at least one request"),
    "failures alone": ((OWN, "0,5,0"), "trace.csv", "a file without requests", "at least one request"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "where", "value", "allowed"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_names_file_line_and_column(
    file: Path, lines: tuple[str, ...], where: str, value: str, allowed: str
) -> None:
    with pytest.raises(InputError) as refusal:
        read(file, *lines)
    assert refusal.value.parameter == (where if where == file.name else f"{file.name}, {where}")
    assert allowed in refusal.value.allowed
    assert str(refusal.value.value).startswith(value)


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    file.write_bytes(OWN.encode() + b"\n0,1,2\n0,\xff,2\n")
    with pytest.raises(InputError, match=r"^trace\.csv, line 3 is b'\\xff'; allowed: text in UTF-8$"):
        read_trace(file)


def test_a_file_that_is_not_there_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match=r"^path is .*; allowed: a file that can be read \(.+\)$"):
        read_trace(file)


ONE_LINE = st.text().filter(lambda text: not set(text) & set("\r\n"))
TOKENS = st.integers(1, 10**6)
REQUESTS = st.builds(
    lambda arrival, prompt, output, more, cached, name: Request(
        arrival, prompt, output, None if more is None else output + more, cached % prompt, name
    ),
    st.integers(0, 2**63 - 1), TOKENS, TOKENS, st.none() | st.integers(0, 100), st.just(0) | TOKENS, ONE_LINE,
)  # fmt: skip


@given(requests=st.lists(REQUESTS, min_size=1, max_size=20))
def test_what_is_saved_is_read_again(requests: list[Request], tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "saved.csv"
    save_trace(requests, file)
    trace = read_trace(file)
    assert trace.requests == tuple(sorted(requests, key=lambda request: request.arrival_ns))
    assert (trace.layout, trace.left_out) == (Layout.OWN, 0)
    assert (trace.reordered == 0) == (trace.requests == tuple(requests))


def test_only_columns_that_say_something_are_saved(file: Path) -> None:
    plain = Request(0, 5, 6)
    for request, more, cell in (
        (plain, "", ""),
        (replace(plain, max_output=6), ",max_output_tokens", ",6"),
        (replace(plain, cached_prefix=4), ",cached_prefix_tokens", ",4"),
        (replace(plain, name='so "quick"'), ",name", ',"so ""quick"""'),
    ):
        save_trace([request], file)
        assert file.read_bytes() == f"{OWN}{more}\n0,5,6{cell}\n".encode()


def test_nothing_to_save_leaves_the_file_alone(file: Path) -> None:
    file.write_text("as it was", encoding="utf-8")
    for nothing in ([], [Request(0, 1, 1, name="\ud800")]):
        with pytest.raises(ValueError):
            save_trace(nothing, file)
        assert file.read_text(encoding="utf-8") == "as it was"


def test_the_made_trace_is_made_as_told(file: Path) -> None:
    save_trace(made_requests(), file)
    assert MADE.read_text(encoding="utf-8") == file.read_text(encoding="utf-8")
    assert read_trace(MADE).notes == ()


def test_the_made_trace_keeps_a_card_busy_and_not_drowned() -> None:
    requests = read_trace(MADE).requests
    last = requests[-1].arrival_ns
    assert 1.5e-9 < len(requests) / last < 2e-9
    few, many = (simulate(requests, continuous(rows)) for rows in (16, 32))
    assert sum(few.queue_ns > 0) > len(requests) / 2
    assert sum(many.queue_ns > 10**9) < len(requests) / 10
    assert many.total_ns < last + 30 * 10**9
