"""An exam of the assent grammar: rows written from the promise alone, and assents spoilt in every language."""

from __future__ import annotations

import random
from collections import Counter

from tests.domain.test_assent import ASSENTS, DATA, ROWS, redress, table, unescaped

from oikos.domain.assent import EXAMPLE, Reading, is_halt, read

ROWS_OF_THE_EXAM = [
    (verdict, language, kind, unescaped(text)) for verdict, language, kind, text in table(DATA / "assent_exam.tsv")
]
LANGUAGES = {"ar", "cs", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "tr", "uk", "zh", "xx"}
"""Those of the hand-over table and their neighbours; `xx` is none or several."""


def test_the_verdict_is_exact_on_every_row_of_the_exam() -> None:
    wrong = [row for row in ROWS_OF_THE_EXAM if read(row[3], EXAMPLE).verdict != row[0]]
    assert wrong == []


def test_the_exam_asks_for_each_verdict_in_each_language() -> None:
    asked = Counter((language, verdict) for verdict, language, _, _ in ROWS_OF_THE_EXAM)
    assert {language for language, _ in asked} == LANGUAGES
    assert all(asked[language, verdict] for language in LANGUAGES for verdict in ("assent", "not_assent", "clarify"))
    assert len({text for *_, text in ROWS_OF_THE_EXAM}) == len(ROWS_OF_THE_EXAM) > 3_000


def test_a_word_that_stops_in_any_language_is_heard_before_any_model_is_asked() -> None:
    halts = [text for _, _, kind, text in ROWS_OF_THE_EXAM if kind == "halt"]
    assert len(halts) > 50
    assert [text for text in halts if not is_halt(text)] == []


# ---- spoilt assents --------------------------------------------------------------------------------------------------

NEGATED = (
    "not {}", "don't {}", "never {}", "no, {}", "{} not", "nicht {}", "{} nicht", "kein {}", "ne {} pas", "pas {}",
    "nunca {}", "non {}", "mai {}", "não {}", "niet {}", "{} niet", "nie {}", "ne {}", "не {}", "никогда не {}",
    "ні {}", "{} değil", "yapma {}", "لا {}", "ليس {}", "不{}", "别{}", "{}ない", "{}ません", "하지마 {}",
    "{} 안돼",
)  # fmt: skip
CONDITIONS = (
    "{} if it is safe", "if it is safe, {}", "{} once the backup is done", "unless it reboots, {}",
    "{} when I am back", "{}, wenn es sicher ist", "falls es sicher ist, {}", "{} si c'est sûr",
    "{} quand c'est fini", "{} si es seguro", "cuando termine, {}", "{} se è sicuro", "{} quando è finito",
    "{} se for seguro", "{} als het veilig is", "{}, jeśli to bezpieczne", "{}, pokud je záloha",
    "{}, если безопасно", "когда закончится, {}", "{}, якщо безпечно", "{} eğer güvenliyse", "{} إذا كان آمنا",
    "如果安全，{}", "备份完成后{}", "もし安全なら{}", "安全なら{}", "안전하면 {}",
)  # fmt: skip
ELSEWHERE = (
    "{} on web2", "{} web2", "{}, only on web1", "{} on all hosts", "{} plan 2", "{}, plan 4", "plan 2: {}",
    "{} step 2", "{}, but not step 2", "{} and reboot web2", "{}, also db2", "{} instead on db2", "{} auf web2",
    "{}, aber nur web1", "{} sur web2", "{} mais sans l'étape 2", "{} en web2", "{} pero solo web1", "{} su web2",
    "{} ma non il passo 2", "{} no web2", "{} mas só web1", "{} op web2", "{} maar zonder stap 2", "{} na web2",
    "{}, ale bez kroku 2", "{} на web2", "{}, но без шага 2", "{} web2'de", "{} ama sadece web1", "{} على web2",
    "{} لكن بدون الخطوة 2", "在web2上{}", "{}，但不要重启", "web2で{}", "{}、でもweb1だけ", "web2에서 {}",
    "{} 하지만 web1만",
)  # fmt: skip
PUT_OFF = (
    "{} later", "{} tomorrow", "not yet, {}", "{} später", "{} morgen", "{} plus tard", "{} demain", "{} más tarde",
    "{} mañana", "{} più tardi", "{} domani", "{} mais tarde", "{} amanhã", "{} straks", "{} później", "{} jutro",
    "{} později", "{} потом", "{} завтра", "{} пізніше", "{} sonra", "{} yarın", "{} لاحقا", "{} غدا", "以后{}",
    "明天{}", "後で{}", "明日{}", "나중에 {}", "내일 {}",
)  # fmt: skip
ASKED = (
    "{}?", "{} ?", "¿{}?", "{}？", "{}؟", "{}‽", "{}?!", "?{}", "should I say {}?", "why {}", "what if I say {}",
    "soll ich sagen: {}?", "warum {}", "pourquoi {}", "¿por qué {}", "perché {}?", "зачем {}", "почему {}", "{}吗",
    "为什么{}", "{}ですか", "なぜ{}", "왜 {}", "neden {}", "{} mı", "هل {}",
)  # fmt: skip
QUOTED = (
    '"{}"', "'{}'", "“{}”", "„{}“", "«{}»", "「{}」", "`{}`", "```{}```", "~~~\n{}\n~~~", "> {}", ">> {}", '"{}',
    "~~{}~~", "~{}~", "~~ {} ~~", "~~{}",
    "'{}", 'he said "{}"', "they said {} to it", "Bob wrote: {}", "user: {}", "Human: {}", "assistant: {}",
    "Nomos: {}", "<user>{}</user>", "> shall I?\n> {}", '{{"say": "{}"}}', "the log says: {}",
)  # fmt: skip
SPOILT = NEGATED + CONDITIONS + ELSEWHERE + PUT_OFF + ASKED + QUOTED
ASSENTS_OF_ALL = [text for text in ASSENTS if "\n" not in text] + [
    text for verdict, _, _, text in ROWS_OF_THE_EXAM if verdict == "assent" and "\n" not in text
]
STOPPED = [text for text, reading in ROWS if reading in (Reading.REFUSAL, Reading.HALT)]


def test_no_assent_survives_a_negation_condition_delay_question_quotation_or_other_target() -> None:
    chance = random.Random(11)
    told = [spoilt.format(text.strip()) for spoilt in SPOILT for text in chance.sample(ASSENTS_OF_ALL, 60)]
    assert len(told) > 10_000
    assert [text for text in told if read(text, EXAMPLE).reading is Reading.ASSENT] == []


def test_an_assent_beside_a_refusal_or_a_halt_is_none() -> None:
    chance = random.Random(5)
    told = set()
    for _ in range(5_000):
        both = [redress(chance, chance.choice(ASSENTS_OF_ALL)), redress(chance, chance.choice(STOPPED))]
        chance.shuffle(both)
        told.add(chance.choice((" ", ", ", "\n", ". ", "! ", " - ", "; ")).join(both))
    assert sorted(text for text in told if read(text, EXAMPLE).reading is Reading.ASSENT) == []
