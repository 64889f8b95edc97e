from __future__ import annotations

from pathlib import Path

import pytest

import cwnd
from cwnd._runs.scenario_keys import read_values, write_values

ROOT = Path(__file__).parents[2]


def dumbbell() -> cwnd.Scenario:
    return cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="5s")


def test_built_in_code():
    scenario = dumbbell().add_flow("reno", count=3).add_flow("simd(beta=1/16)", start="0s..1s")
    compiled = scenario.validate()
    assert compiled["flows"] == 4
    assert compiled["duration_s"] == 5.0
    assert "left-right" in compiled["links"]


def test_toml_reads_back_to_the_same_run():
    scenario = dumbbell().add_flow("reno", count=2)
    again = cwnd.Scenario.from_toml(scenario.to_toml())
    assert again.validate() == scenario.validate()
    one, other = cwnd.run(scenario).to_json(), cwnd.run(again).to_json()
    one.pop("engine")
    other.pop("engine")
    assert one == other


def test_controllers_are_written_in_full():
    (flow,) = dumbbell().add_flow(" aimd( 0.31, 1/8 ) ").to_dict()["flow"]
    assert flow["controller"] == "aimd(alpha=0.31, beta=1/8)"


def test_what_is_given_out_is_a_copy():
    scenario = dumbbell().add_flow("reno")
    scenario.to_dict()["flow"].clear()
    scenario.controllers["x"] = object
    assert scenario.validate()["flows"] == 1
    assert scenario.controllers == {}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "python/cwnd/scenarios").glob("*.toml")), ids=lambda p: p.stem
)
def test_ready_made_scenarios(path):
    assert cwnd.Scenario.from_toml(path).validate()["flows"] > 0


def test_mistakes_name_file_line_and_key(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('duration = "5s"\n[dumbbell]\nrate = "15mbps"\ndelay = "20ms"\n')
    with pytest.raises(
        cwnd.ScenarioError, match=r"wrong\.toml:3: dumbbell\.rate: .*mbit"
    ) as caught:
        cwnd.Scenario.from_toml(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"start": "-1s"}, "start"),
        ({"count": 10**9}, "count"),
        ({"colour": "red"}, "colour"),
        ({"bytes": -5}, "bytes"),
    ],
)
def test_mistakes_in_code_name_the_key(keys, named):
    with pytest.raises(cwnd.ScenarioError, match=named):
        dumbbell().add_flow("reno", **keys).validate()


@pytest.mark.parametrize("name", ["rate", "rtt", "queue", "time", "warmup", "access", "sample"])
@pytest.mark.parametrize("value", ["5", 5, 0.5])
def test_an_argument_without_a_unit_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"^{name}: a \w+ needs a unit"):
        cwnd.Scenario.dumbbell(**{name: value})


def test_not_text(tmp_path):
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(cwnd.ScenarioError, match=r"binary\.toml"):
        cwnd.Scenario.from_toml(path)


def test_unknown_controllers_are_refused_at_once():
    with pytest.raises(cwnd.SpecError, match="renno"):
        dumbbell().add_flow("renno")
    with pytest.raises(TypeError, match="neither a specification nor a class of a controller"):
        dumbbell().add_flow(3)


def test_two_classes_of_one_name():
    def law():
        class Law:
            def grow(self, w, acked, cx):
                return w

            def cut(self, w, why, cx):
                return w / 2

        return Law

    with pytest.raises(ValueError, match="Law"):
        dumbbell().add_flow(law()).add_flow(law())


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ({"dumbbell.rate": 2e7}, ["dumbbell.rate=20mbit"]),
        ({"flow[0].start": 0.5, "warmup": 0}, ["flow[0].start=500ms", "warmup=0"]),
        ({"flow[0].bytes": 1000}, ["flow[0].bytes=1000b"]),
        ({"tcp": {"min_rto": 0.2, "ecn": True}}, ['tcp={min_rto = "200ms", ecn = true}']),
        ({"tcp.timestamps": True}, ["tcp.timestamps=true"]),
        (
            {"dumbbell.queue": 20, "dumbbell.loss": 0.01},
            ["dumbbell.queue=20p", "dumbbell.loss=0.01"],
        ),
        ({"name": "5"}, ['name="5"']),
        ({"flow[0].controller": "simd(beta=1/16)"}, ["flow[0].controller=simd(beta=1/16)"]),
    ],
)
def test_values_are_written_as_the_command_line_reads_them(values, texts):
    assert write_values(values) == [word for text in texts for word in ("--set", text)]
    one, other = (dumbbell().add_flow("reno").with_values(v) for v in (values, read_values(texts)))
    assert one.validate() == other.validate()
    assert write_values(read_values(texts)) == write_values(values)


def test_a_trace_is_read_beside_the_scenario(tmp_path, monkeypatch):
    (tmp_path / "rate.txt").write_text("1\n1\n2\n")
    (tmp_path / "bad.txt").write_text("1\nx\n")
    text = (
        'duration = "2s"\n[dumbbell]\ndelay = "5ms"\ntrace = "rate.txt"\n'
        'back = { rate = "10mbit" }\n'
        '[[flow]]\ncontroller = "reno"\n'
    )
    file = tmp_path / "trace.toml"
    file.write_text(text)
    link = cwnd.run(cwnd.Scenario.from_toml(file)).record["links"][0]
    assert link["rate_bps"] == 3 * 8 * 1504 / 0.002
    assert link["capacity_bps"].size == 20
    # Without a file, names are relative to the working directory.
    monkeypatch.chdir(tmp_path)
    assert cwnd.Scenario.from_toml(text).validate()["flows"] == 1
    file.write_text(text.replace("rate.txt", "bad.txt"))
    with pytest.raises(cwnd.ScenarioError, match=r"trace\.toml:4: dumbbell\.trace: .*bad\.txt:2: "):
        cwnd.Scenario.from_toml(file)


def test_two_controllers_share_a_staggered_group():
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="20ms", time="5s")
    scenario = scenario.add_flow("reno", count=3, start="1s..2s", stagger="500ms")
    flows = scenario.with_controllers("simd", "cubic").to_dict()["flow"]
    found = [(flow["controller"], flow["count"], flow["start"]) for flow in flows]
    assert found == [
        ("simd", 2, "1.000000000s..2.000000000s"),
        ("cubic", 1, "1.500000000s..2.500000000s"),
    ]
    assert [flow["stagger"] for flow in flows] == [1.0, 1.0]
