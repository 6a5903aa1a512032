from interp.report.heads_frames import file_names, shown_names, with_shown_names

LONG = "blimp:/home/me/données/blimp/regular_plural_subject_verb_agreement_1.jsonl"


def test_a_path_is_shown_by_its_stem_and_another_name_as_it_is():
    assert shown_names(["agreement", LONG, "blimp:wh_island", "a/b.c"]) == {
        "agreement": "agreement",
        LONG: "blimp:regular_plural_subject_verb_agreement_1",
        "blimp:wh_island": "blimp:wh_island",
        "a/b.c": "a/b.c",
    }


def test_equal_stems_are_told_apart():
    tasks = ["blimp:one/x.jsonl", "blimp:two/x.jsonl", "blimp:x", "blimp:same/y.jsonl", "blimp:same/y"]
    assert list(shown_names(tasks).values()) == [
        "blimp:one/x",
        "blimp:two/x",
        "blimp:x",
        "blimp:same/y.jsonl",
        "blimp:same/y",
    ]


def test_naming_twice_changes_nothing():
    tasks = ["blimp:/data/one/x.jsonl", "blimp:/data/two/x.jsonl", LONG]
    once = list(shown_names(tasks).values())
    assert list(shown_names(once).values()) == once


def test_every_frame_that_is_shown_gets_the_names_and_the_rest_keeps_the_paths(make_report):
    report = make_report(tasks=("agreement", LONG))
    shown = with_shown_names(report)
    for frame in (shown.cells, shown.tasks, shown.attention_maps):
        assert set(frame["task"]) == {"agreement", "blimp:regular_plural_subject_verb_agreement_1"}
    assert set(shown.examples["task"]) == {"agreement", LONG}
    assert shown.provenance == report.provenance
    assert LONG in set(report.cells["task"])


def test_file_names_are_plain_and_distinct():
    names = file_names(["blimp:data/A b.jsonl", "blimp:other/A b.jsonl", "a-b-2", "données", "…", "…"])
    assert names == ["a-b", "a-b-2", "a-b-2-2", "donn-es", "task", "task-2"]


def test_a_name_that_would_fill_the_page_is_shortened_and_stays_distinct():
    tasks = ["x" * 10_000, "x" * 10_001, f"blimp:{'y' * 200}.jsonl", "x" * 119 + "…", "z" * 120]
    names = shown_names(tasks)
    assert list(names.values()) == [
        "x" * 118 + "…2",
        "x" * 118 + "…3",
        f"blimp:{'y' * 113}…",
        "x" * 119 + "…",
        "z" * 120,
    ]
    assert list(shown_names(list(names.values())).values()) == list(names.values())
