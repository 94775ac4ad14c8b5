"""The default voice catalog."""

from dialsim.interface.agent import DEFAULT_VOICES, SAMPLE_CATEGORIES


def test_the_catalog_names_each_voice_once_and_has_malee() -> None:
    keys = [voice.voice_key for voice in DEFAULT_VOICES]
    assert len(set(keys)) == len(keys) >= 6
    assert "malee" in keys


def test_the_catalog_has_both_genders_and_an_accent() -> None:
    assert {voice.gender for voice in DEFAULT_VOICES} == {"female", "male"}
    assert {voice.is_native for voice in DEFAULT_VOICES} == {True, False}


def test_a_voice_is_written_with_the_interfaces_names() -> None:
    assert DEFAULT_VOICES[0].model_dump(by_alias=True) == {
        "voiceKey": "malee",
        "displayName": "Malee",
        "gender": "female",
        "isNative": True,
    }


def test_sample_sentences_end_as_the_speaker_is_and_have_unique_ids() -> None:
    sentences = [item for category in SAMPLE_CATEGORIES for item in category.sentences]
    assert all(item.text_female.endswith("ค่ะ") for item in sentences)
    assert all(item.text_male.endswith("ครับ") for item in sentences)
    assert len({item.sentence_id for item in sentences}) == len(sentences)
    assert set(SAMPLE_CATEGORIES[0].model_dump(by_alias=True)) == {
        "categoryKey",
        "label",
        "sentences",
    }
