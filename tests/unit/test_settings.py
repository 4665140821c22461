import dataclasses
from pathlib import Path

import pytest

from interlog.app.settings import GiB, MiB, Settings, from_arguments, load, table
from interlog.base.errors import SettingError


def refusal(**values: object) -> str:
    with pytest.raises(SettingError) as caught:
        from_arguments(values)
    return str(caught.value)


def test_defaults_need_nothing(tmp_path: Path) -> None:
    settings = load({}, {}, folder=tmp_path)
    assert settings == Settings()
    assert (settings.host, settings.http_port, settings.durability) == ("127.0.0.1", 15672, "sync")
    assert list(settings.ports()) == [("amqp", 5672), ("kafka", 9092), ("http", 15672)]


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().host = "0.0.0.0"  # type: ignore[misc]


def test_a_flag_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "interlog.toml").write_text('http_port = 1\nhost = "127.0.0.2"\ndurability = "os"\n')
    environment = {"INTERLOG_HTTP_PORT": "2", "INTERLOG_HOST": "127.0.0.3", "PATH": "/bin"}
    settings = load({"http_port": "3"}, environment, folder=tmp_path)
    assert (settings.http_port, settings.host, settings.durability) == (3, "127.0.0.3", "os")


def test_a_file_elsewhere_is_read_when_named_and_must_then_exist(tmp_path: Path) -> None:
    config = tmp_path / "other.toml"
    with pytest.raises(SettingError, match=r"other\.toml does not exist"):
        load({}, {}, config=config)
    config.write_text("memory_bytes = '1GiB'")
    assert load({}, {}, config=config, folder=tmp_path).memory_bytes == GiB


def test_a_file_that_is_not_toml_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "interlog.toml").write_text("http_port = = 1")
    with pytest.raises(SettingError, match=r"interlog\.toml is not TOML: .*line 1"):
        load({}, {}, folder=tmp_path)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"http_port": 70000}, "http_port = 70000 (from an argument) must be 0 (the system chooses) to 65535, or off."),
        ({"http_port": True}, "http_port = True (from an argument) must be 0 (the system chooses) to 65535, or off."),
        ({"http_port": "-1"}, "http_port = '-1' (from an argument) must be 0 (the system chooses) to 65535, or off."),
        ({"durability": "fast"}, "durability = 'fast' (from an argument) must be sync or os."),
        ({"log_format": "xml"}, "log_format = 'xml' (from an argument) must be auto, human or json."),
        ({"data": ""}, "data = '' (from an argument) must be a path."),
        ({"host": "a b"}, "host = 'a b' (from an argument) must be an IP address or a host name of this machine."),
        (
            {"memory_bytes": "1KiB"},
            "memory_bytes = '1KiB' (from an argument) must be 1MiB to 64TiB, as a number of bytes or with KiB, MiB, "
            "GiB or TiB.",
        ),
        (
            {"flush_ms": "1 week"},
            "flush_ms = '1 week' (from an argument) must be 10ms to 1h, as a number of milliseconds or with ms, s, "
            "min, h or d.",
        ),
        ({"htp_port": 1}, "htp_port (from an argument) is not a setting. Did you mean http_port?"),
        (
            {"zzz": 1},
            "zzz (from an argument) is not a setting. `interlog serve --help` lists all that there are.",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(values: dict[str, object], sentence: str) -> None:
    assert refusal(**values) == sentence


def test_the_sentence_tells_where_the_value_came_from(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"from the flag --http-port"):
        load({"http_port": "x"}, {}, folder=tmp_path)
    with pytest.raises(SettingError, match=r"from the environment, INTERLOG_HTTP_PORT"):
        load({}, {"INTERLOG_HTTP_PORT": "x"}, folder=tmp_path)
    (tmp_path / "interlog.toml").write_text("http_port = 'x'")
    with pytest.raises(SettingError, match=r"from .*interlog\.toml"):
        load({}, {}, folder=tmp_path)


def test_unknown_keys_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"INTERLOG_DURABILTY .* Did you mean INTERLOG_DURABILITY\?"):
        load({}, {"INTERLOG_DURABILTY": "os"}, folder=tmp_path)
    (tmp_path / "interlog.toml").write_text("[journal]\nfile_bytes = 1")
    with pytest.raises(SettingError, match=r"journal \(from .*interlog\.toml\) is not a setting"):
        load({}, {}, folder=tmp_path)


def test_what_kubernetes_adds_for_a_service_of_this_name_is_no_setting(tmp_path: Path) -> None:
    links = {"INTERLOG_SERVICE_HOST": "10.0.0.1", "INTERLOG_PORT_15672_TCP": "x", "KUBERNETES_SERVICE_HOST": "10.0.0.2"}
    assert load({}, links, folder=tmp_path) == Settings()


FACES = ["rocketmq", "rocketmq_remoting", "zookeeper"]


@pytest.mark.parametrize("protocol", FACES)
def test_a_face_that_is_not_built_is_off_and_refused_when_asked_for(protocol: str) -> None:
    name = f"{protocol}_port"
    assert getattr(from_arguments({name: "off"}), name) is None
    assert "this version of Interlog does not speak" in refusal(**{name: 0})
    assert "Leave it off." in refusal(**{name: "5672"})


def test_sizes_and_times_take_units() -> None:
    settings = from_arguments({"journal_file_bytes": "8 MiB", "journal_roll_ms": "90s", "checkpoint_ms": 500})
    assert (settings.journal_file_bytes, settings.journal_roll_ms, settings.checkpoint_ms) == (8 * MiB, 90_000, 500)
    assert from_arguments({"journal_roll_ms": 0}).journal_roll_ms == 0
    assert "must be" in refusal(checkpoint_ms=0)


def test_members_of_groups_heartbeat_before_their_sessions_end() -> None:
    assert "must be shorter than kafka_group_session_ms = 3000" in refusal(kafka_group_session_ms="3s")
    quick = from_arguments({"kafka_group_session_ms": "1s", "kafka_group_heartbeat_ms": "200ms"})
    assert (quick.kafka_group_session_ms, quick.kafka_group_heartbeat_ms) == (1_000, 200)


def test_every_default_is_a_value_that_is_allowed() -> None:
    for row in table():
        assert row.kind.parse(row.default) == row.default
        assert row.help.endswith(".")
        if row.default is not None:
            assert row.kind.parse(row.default_text) == row.default


def test_the_guide_lists_every_setting_with_its_default() -> None:
    from interlog.app.guide import settings_page

    page = Path(__file__).parents[2] / "docs" / "guide" / "settings.md"
    assert page.read_text(encoding="utf-8") == settings_page(), "run: python -m interlog.app.guide"
