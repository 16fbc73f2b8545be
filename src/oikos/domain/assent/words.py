"""The closed vocabulary of chat assent: every phrase the grammar knows, by kind and language (SPEC R3.7)."""

from __future__ import annotations

import enum
from collections.abc import Mapping


class Kind(enum.StrEnum):
    """What a phrase does in a message."""

    YES = "yes"
    """Says yes by itself; with more beside it the operator is asked."""
    GO = "go"
    """Orders the thing done; with unknown words in its clause it is an order for something else ("go back")."""
    FILL = "fill"
    """Changes nothing beside an assent or a refusal, and is neither alone."""
    MILD = "mild"
    """Approval of tone only: filler beside an assent, a doubt alone."""
    NO = "no"
    """Says no by itself."""
    NOT = "not"
    """Turns the clause it stands in into a refusal."""
    HALT = "halt"
    """Stops what runs (SPEC R1.8)."""
    WAIT = "wait"
    """Stops what runs; before a proposed plan and with more text behind it, it is only talk."""
    WHAT = "what"
    """What a halt word may name and still be bare: "stop everything"."""
    LATER = "later"
    """Puts the decision off."""
    IF = "if"
    """Makes it depend on something."""
    PART = "part"
    """Takes a part, adds to it, or moves it elsewhere."""
    DOUBT = "doubt"
    """Undecided, an idiom, or a word that means yes and no."""
    ASK = "ask"
    """Begins a question."""
    GENERATION = "generation"
    """Names a plan by its number; `#` stands for the number."""


WORDS: Mapping[Kind, str] = {
    Kind.YES: """
    en: yes | y | yep | yeah | yup | aye | ok | okay | okey | sure | of course | certainly | absolutely
    en: definitely | agreed | i agree | fine | fine by me | approve | approved | i approve | lgtm | looks good
    en: looks good to me | sounds good | sounds great | alright | all right | by all means | confirm | confirmed
    en: i confirm | accept | accepted | i accept | affirmative | permission granted | you may proceed
    en: approve plan | approve plan # | that works | works for me | sounds like a plan | i'm fine with that
    en: i'm ok with that | fine with me | okey dokey | approved by me
    de: alles klar | geht klar | ja | jawohl | jep | klar | na klar | einverstanden | genehmigt | freigegeben
    de: in ordnung | passt | gerne | gern | ich genehmige | ich stimme zu
    xx: 👍 | 👌 | ✅ | ✔ | 🆗 | +1
    fr: oui | ouais | d'accord | bien sûr | approuvé | j'approuve | je confirme | validé | ça marche | c'est bon
    es: sí | claro | de acuerdo | vale | aprobado | apruebo | confirmo | por supuesto | está bien
    it: sì | certo | certamente | va bene | approvato | confermo
    pt: sim | com certeza | aprovado | aprovo | está bem | tudo bem
    nl: akkoord | goedgekeurd | oké | is goed | zeker
    sv: japp | visst | godkänt | godkänd | okej | det går bra
    da: godkendt
    fi: kyllä | joo | hyväksytty | selvä
    pl: tak | zgoda | zatwierdzam | potwierdzam | dobrze | dobra
    cs: ano | jasně | souhlasím | schvaluji | dobře | schváleno
    ru: да | ага | хорошо | ладно | согласен | согласна | одобряю | одобрено | подтверждаю | конечно | ок | окей
    uk: так | добре | гаразд | згоден | згодна | схвалюю | підтверджую
    el: ναι | εντάξει | σύμφωνοι | εγκρίνω
    tr: evet | tamam | olur | onaylıyorum | onaylandı | kabul | kabul ediyorum | peki
    ar: نعم | أجل | موافق | حسناً | تمام | أوافق
    fa: بله
    he: כן | בסדר | מאשר | מאשרת | מאושר
    hi: हाँ | हां | ठीक है | स्वीकृत
    zh: 好 | 好的 | 可以 | 是 | 是的 | 行 | 同意 | 批准 | 没问题 | 沒問題 | 确认 | 確認
    ja: はい | ええ | うん | 承認 | 承認します | オーケー | オッケー | 賛成です | いいですよ | いいよ
    ko: 네 | 예 | 응 | 좋아 | 좋습니다 | 승인 | 승인합니다 | 승인해 | 동의합니다 | 그래 | 오케이
    id: baik | setuju
    """,
    Kind.GO: """
    en: go | go ahead | go on | go for it | do it | do that | do this | do so | please do | just do it | proceed
    en: continue | run it | run the plan | execute | start | begin | resume | carry on | keep going | let's go
    en: let's do it | you can proceed | you can go ahead | you may go ahead | you can continue | let's do this
    en: make it so | ship it | apply it | apply the plan | do the plan
    de: los | los geht's | leg los | legen sie los | mach | mach's | machen | machen wir | weiter | weitermachen
    de: machen sie weiter | fortfahren | ausführen | führe es aus | führ es aus | starte | auf geht's | tu es
    de: tu das | führe den plan aus
    fr: vas-y | c'est parti | allez | on y va | continuez | fais-le | faites-le | procède | procédez | exécutez
    fr: lance | lancez | poursuivez | poursuis
    es: adelante | dale | hazlo | hágalo | proceda | continúa | sigue | siga | ejecuta | ejecútalo | venga
    it: procedi | vai | avanti | fallo pure | esegui | prosegui
    pt: pode | pode fazer | vai em frente | vá em frente | pode seguir | pode ir | prossiga | faça | faz isso
    pt: pode continuar | pode executar | segue | manda ver
    nl: doe het | doe maar | ga door | ga je gang | ga verder | ga maar | voer uit | uitvoeren
    sv: kör | kör på | gör det | fortsätt
    da: gør det | fortsæt | kør
    nb: gjør det | fortsett
    fi: jatka | tee se | aloita
    pl: śmiało | zrób to | rób | kontynuuj | wykonaj | działaj | dawaj | dalej
    cs: pokračuj | pokračujte | udělej to | proveď to | do toho
    ru: давай | давайте | действуй | действуйте | делай | делайте | сделай | выполняй | выполни | выполняйте
    ru: продолжай | приступай | приступайте | продолжайте | запускай | запускайте | поехали | вперёд
    uk: роби | зроби це | виконуй | продовжуй | дій
    el: προχώρα | συνέχισε | κάν'το
    tr: devam | devam edin | yap | başla | çalıştır | uygula
    ar: تابع | استمر | نفّذ | ابدأ | تفضل | واصل | افعل ذلك
    he: תמשיך | קדימה | בצע
    hi: करो | आगे बढ़ो | कर दो | जारी रखो
    zh: 执行 | 執行 | 继续 | 繼續 | 开始 | 開始 | 做吧 | 去做 | 干吧 | 进行 | 進行 | 运行 | 運行 | 动手
    ja: お願いします | それでお願いします | お願い | やって | 進めて | 続けて | 実行 | 実行して | どうぞ | 続行
    ja: 続行して | 始めて
    ko: 진행 | 진행해 | 진행해주세요 | 진행해줘 | 진행합시다 | 계속 | 계속해 | 해줘 | 해주세요 | 하세요 | 실행해
    ko: 실행하세요 | 시작해 | 시작하세요
    id: lanjut | lanjutkan | jalankan | silakan
    """,
    Kind.FILL: """
    en: please | pls | now | right away | then | and | so | thanks | thank you | thx | nomos | oikos | it | this
    en: that | the plan | this plan | your plan | with it | with the plan | with this plan | as proposed
    en: as planned | as described | as shown | to plan
    xx: 🙏 | 🙂 | 🎉 | 🚀
    de: bitte | jetzt | dann | und | danke | mal | den plan | der plan | es | das | wie geplant
    de: wie vorgeschlagen
    fr: s'il te plaît | s'il vous plaît | svp | maintenant | merci | et | alors | le plan | comme prévu
    es: por favor | ahora | gracias | pues | el plan | entonces
    it: per favore | adesso | ora | grazie | e | pure | allora | il piano
    pt: agora | obrigado | obrigada | então | o plano | isso
    nl: alsjeblieft | graag | nu | dank je | bedankt | het plan
    sv: tack | snälla
    pl: proszę | teraz | dziękuję | więc
    cs: prosím | teď | děkuji
    ru: пожалуйста | сейчас | спасибо | и | ну | это | этого | план | тогда
    uk: будь ласка | зараз | дякую | це
    tr: lütfen | şimdi | teşekkürler | planı
    ar: من فضلك | الآن | شكرا | الخطة
    he: בבקשה | עכשיו | תודה
    hi: कृपया | अब | धन्यवाद
    zh: 吧 | 请 | 請 | 啊 | 现在 | 現在 | 谢谢 | 謝謝 | 计划 | 計劃
    ja: です | ね | よ | 今 | ください | 計画
    ko: 요 | 지금 | 감사합니다 | 부탁해요 | 부탁합니다 | 어서 | 계획
    id: sekarang | tolong
    """,
    Kind.MILD: """
    en: good | great | perfect | nice | cool | excellent | right | correct | well | exactly | roger | got it
    en: understood | noted | oh
    de: super | prima | perfekt | gut | genau | verstanden
    fr: compris | parfait | bien
    es: entendido | perfecto | bueno
    it: capito | perfetto | bene
    pt: entendi | perfeito | bom | ótimo
    nl: begrepen | goed
    ru: понятно | понял | поняла | отлично
    uk: зрозуміло | чудово
    tr: anladım
    zh: 知道了 | 很好
    ja: 了解 | 了解しました | わかりました | いいですね
    ko: 알겠습니다 | 알겠어요 | 좋네요
    sv: bra
    da: fint
    pl: świetnie
    """,
    Kind.NO: """
    en: no | n | nope | nah | no way | reject | rejected | refuse | refused | deny | denied | decline | declined
    en: disapprove | disapproved | i refuse | i reject | never mind | nevermind | negative | forget it
    en: leave it | absolutely not | of course not | certainly not | definitely not
    xx: 👎 | ❌ | 🚫 | ⛔
    de: nein | nee | abgelehnt | ablehnen | ich lehne ab | auf keinen fall | lass es | lass das
    fr: non | je refuse | pas question | ne le fais pas | ne le faites pas | ne fais pas ça | ne fais rien
    fr: surtout pas
    es: no lo hagas | no lo haga | no hagas eso | no hagas nada | rechazo | rechazado | de ninguna manera
    it: rifiuto | rifiutato | non farlo | non lo fare | assolutamente no
    pt: rejeitado | recuso | nem pensar
    nl: nee hoor | afgewezen | geweigerd
    sv: nej
    da: afvist
    nb: nei
    pl: odrzucam | odmawiam | nie rób tego | nie zgadzam się
    cs: zamítám | nedělej to
    ru: нет | отклонено | отклоняю | отказ | нельзя | не надо | не нужно | не стоит | ни в коем случае
    uk: ні | відхиляю | не треба
    el: όχι
    tr: hayır | reddediyorum | reddedildi | olmaz | yok
    ar: لا | كلا | مرفوض | أرفض | لا تفعل | لا تفعل ذلك | لا تنفذ
    fa: نه
    he: לא | אל תעשה
    hi: नहीं | मत करो
    zh: 不 | 不要 | 不用 | 拒绝 | 拒絕 | 否 | 別 | 别 | 不了 | 算了 | 没有 | 不用了 | 别做 | 不要做
    ja: いいえ | いや | だめ | ダメ | やめて | やめよう | やらないで | しないで | 拒否 | 却下 | 続けないで
    ja: 進めないで
    ko: 아니 | 아니오 | 아뇨 | 하지마 | 하지마세요 | 안돼 | 안됩니다 | 거부 | 싫어 | 하지말아 | 하지마라
    id: tidak | jangan
    """,
    Kind.NOT: """
    en: not | don't | do not | i don't | i do not | never | cannot | can't | won't | i won't | must not
    en: mustn't
    de: nicht | kein | keine | niemals | nie
    fr: ne | pas | jamais
    es: nunca | jamás
    it: mai
    pt: não
    nl: niet
    sv: inte
    da: ikke
    fi: ei | älä
    cs: nedělej
    ru: не | никогда
    el: μην
    tr: yapma | etme | yapmayın
    """,
    Kind.HALT: """
    en: stop | halt | cancel | abort | cancelled | canceled | freeze | quit
    xx: 🛑 | ✋
    de: stopp | abbrechen | abbruch | anhalten | aufhören | hör auf | halte an
    fr: arrête | arrêtez | annule | annulez | annuler | stoppe
    es: para | detente | deténgase | alto | cancela | cancelar | basta | detén
    it: ferma | fermati | fermo | annulla
    pt: pare | cancele | parem
    nl: annuleer | annuleren
    sv: stoppa | avbryt | stanna
    da: afbryd | stands
    fi: seis | peruuta | lopeta
    pl: zatrzymaj | zatrzymaj się | anuluj | przerwij | przestań
    cs: zastav | zrušit | zruš | přestaň
    ru: стоп | остановись | остановитесь | остановить | останови | отмена | отмени | отменить | прекрати
    ru: хватит
    uk: зупинись | скасувати | скасуй | припини
    el: σταμάτα | ακύρωσε
    tr: dur | durun | iptal | durdur | vazgeç
    ar: توقف | قف | ألغ | إلغاء | أوقف
    he: עצור | תעצור | בטל | תפסיק
    hi: रुको | रुकिए | रद्द करो | बंद करो
    zh: 停 | 停止 | 停下 | 取消 | 中止 | 住手 | 别动 | 別動 | 停一下 | 先别动 | 先別動 | 打住
    ja: 止めて | 止まれ | ストップ | 中断 | キャンセル | 止まって | とめて
    ko: 멈춰 | 멈추세요 | 중지 | 중단 | 취소 | 정지 | 그만 | 스톱 | 그만해
    id: berhenti | batalkan | hentikan
    """,
    Kind.WAIT: """
    en: wait | hold on | hold it | hang on | one moment | pause | not so fast | hold your horses | just a moment
    de: warte | warten | moment | einen moment | warten sie
    fr: attends | attendez | attendre | un instant | une minute
    es: espera | espere | un momento | espérate
    it: aspetta | aspetti | attendi | un attimo
    pt: aguarde | espere um pouco
    nl: wacht | wacht even
    sv: vänta
    da: vent
    fi: odota
    pl: czekaj | poczekaj | zaczekaj | chwileczkę
    cs: počkej | počkejte | čekej
    ru: подожди | подождите | погоди | погодите | ждите | жди | постой | минутку
    uk: зачекай | зачекайте | чекай
    el: περίμενε
    tr: bekle | bekleyin | bir dakika
    ar: انتظر | انتظري | لحظة
    he: חכה | רגע
    hi: ठहरो | प्रतीक्षा करो
    zh: 等 | 等一下 | 稍等 | 慢着 | 等一等 | 且慢
    ja: 待って | ちょっと待って | 待て
    ko: 기다려 | 기다리세요 | 잠깐 | 잠깐만 | 잠시만 | 기다려주세요
    id: tunggu
    """,
    Kind.WHAT: """
    en: everything | all | there | the run | running | working | a minute | a moment | a second | a sec | a bit
    en: immediately | at once
    de: alles | sofort
    fr: tout
    es: todo
    it: tutto | subito
    pt: tudo
    ru: всё | немедленно
    """,
    Kind.LATER: """
    en: later | tomorrow | yet | not now | tonight | soon | next week | another time | some other time
    en: in a minute | in an hour | after lunch | this evening | on monday | this afternoon
    de: später | spaeter | morgen | noch nicht | jetzt nicht | nicht jetzt | heute abend | nachher | erst morgen
    fr: plus tard | demain | pas encore | pas maintenant | ce soir | tout à l'heure
    es: más tarde | luego | mañana | todavía no | aún no | ahora no | después
    it: più tardi | dopo | domani | non ancora | non adesso | non ora
    pt: mais tarde | depois | amanhã | ainda não | agora não
    nl: nog niet | nu niet | straks
    sv: senare | imorgon | inte än | inte nu
    da: senere | ikke endnu
    pl: później | jutro | jeszcze nie | nie teraz | potem
    cs: později | zítra | ještě ne | teď ne
    ru: потом | позже | завтра | ещё не | пока нет | пока не | не сейчас | попозже
    uk: пізніше | ще ні | не зараз | потім
    tr: sonra | yarın | henüz değil | şimdi değil
    ar: لاحقا | غدا | ليس بعد | ليس الآن | بعدين
    he: אחר כך | מחר | עדיין לא | לא עכשיו
    hi: बाद में | कल | अभी नहीं
    zh: 以后 | 以後 | 稍后 | 稍後 | 明天 | 还没 | 還沒 | 等会儿 | 晚点 | 待会 | 还不行 | 先别 | 先不要 | 现在不
    zh: 回头 | 过会儿
    ja: 後で | あとで | 明日 | まだ | 今はやめて
    ko: 나중에 | 내일 | 아직 | 이따가
    id: nanti | besok
    """,
    Kind.IF: """
    en: if | when | once | unless | after | until | till | as soon as | provided | assuming | as long as
    en: in case | before
    de: wenn | falls | sobald | nachdem | sofern | solange | bevor | erst
    fr: quand | dès que | après | à condition | lorsque | une fois
    es: cuando | siempre que | en cuanto | una vez
    it: quando | purché | appena
    pt: se | assim que | desde que
    nl: als | zodra | wanneer | nadat
    sv: om | när
    da: hvis | når
    pl: jeśli | jeżeli | gdy | kiedy | jak tylko | o ile
    cs: pokud | když | jestli | až
    ru: если | когда | после | при условии | как только
    uk: якщо | коли | після
    tr: eğer | ise
    ar: إذا | عندما | لو | بعد
    he: אם | כאשר
    hi: अगर | यदि | जब
    zh: 如果 | 要是 | 除非
    ja: もし | たら | なら
    ko: 면
    id: jika | kalau
    """,
    Kind.PART: """
    en: but | except | only | without | just | skip | step | steps | step # | steps # | instead | also | too
    en: other | first | last | the first | the last | on | with | every | always | future | both | half
    en: partially | plus | rather | however
    de: aber | außer | nur | ohne | schritt | schritt # | stattdessen | auch | immer | alle | statt | zuerst
    fr: mais | sauf | seulement | sans | étape | étape # | l'étape # | aussi | toujours | plutôt | tous
    fr: uniquement
    es: pero | excepto | sólo | sin | paso # | también | siempre | menos | salvo
    it: ma | tranne | senza | passo # | anche | invece | solamente
    pt: mas | exceto | só | apenas | sem | também
    nl: behalve | alleen | zonder | stap # | ook | altijd | maar
    sv: men | utom | bara | utan | steg #
    da: kun | uden | trin #
    pl: ale | oprócz | tylko | bez | krok # | też | zawsze | zamiast
    cs: kromě | jen | pouze
    ru: но | кроме | только | без | шаг # | также | всегда | вместо
    uk: але | крім | тільки | лише | крок #
    tr: ama | hariç | sadece | yalnızca | adım #
    ar: لكن | ولكن | إلا | فقط | بدون | خطوة
    he: אבל | רק | בלי
    hi: लेकिन | सिर्फ | केवल | बिना
    zh: 但 | 除了 | 只 | 不过 | 不過 | 步 | 所有 | 另外
    ja: でも | だけ | 以外 | ただし | けど | が | ステップ
    ko: 하지만 | 만 | 빼고 | 제외 | 그런데 | 단계
    id: tapi | hanya | kecuali
    """,
    Kind.DOUBT: """
    en: maybe | perhaps | probably | possibly | hmm | hm | mm | why not | yeah right | i guess | i suppose
    en: i think | not sure | i'm not sure | i am not sure | i don't know | dunno | whatever | if you say so
    en: up to you | your call | no idea | as if | um | uh | kind of | sort of | no problem | not bad
    en: if you want | if you must | ya | i see | if you like | yeah yeah | sure sure | meh | kinda | k
    xx: 🤔 | 🤷 | 🙃
    de: vielleicht | weiß nicht | ich weiß nicht | mal sehen | warum nicht | na ja | naja | jein | eventuell
    de: von mir aus | ich glaube | ich glaube schon | ich denke | meinetwegen | kein problem | ja ja
    fr: je pense | je crois | peut-être | pourquoi pas | bof | je ne sais pas | pas de problème | oui oui
    es: como quieras | supongo | creo que sí | quizás | quizá | tal vez | por qué no | no sé | a lo mejor
    es: fallo
    it: credo di sì | penso di sì | forse | perché no | non so | boh | se vuoi
    pt: acho que sim | talvez | por que não | não sei
    nl: misschien | waarom niet
    sv: kanske | varför inte
    da: måske
    pl: może | czemu nie | nie wiem | chyba
    cs: možná | proč ne | nevím
    ru: может быть | может | наверное | почему бы и нет | не знаю | возможно | ну да | да ну | как хочешь
    uk: можливо | мабуть
    tr: belki | bilmiyorum | neden olmasın
    ar: ربما | لا أعرف | لا أدري | إن شاء الله
    he: אולי | לא יודע
    hi: शायद | पता नहीं
    zh: 也许 | 也許 | 可能 | 随便 | 隨便 | 不知道 | 再说 | 不一定 | 嗯 | 好吧好吧
    ja: 大丈夫 | いい | たぶん | 多分 | かも | かもしれない | どうかな | わからない | うーん | 結構
    ja: けっこうです
    ko: 아마 | 글쎄 | 괜찮습니다 | 괜찮아 | 모르겠어요 | 됐어
    id: mungkin
    """,
    Kind.ASK: """
    en: what | why | how | which | who | where
    de: was | warum | wieso | wie | welche | welcher | wer | wo | wann | ob | soll
    fr: quoi | pourquoi | comment | quel | quelle | qui | où
    es: qué | cómo | cuál | quién | dónde | cuándo
    it: cosa | perché | come | quale | chi | dove
    pt: quem | onde | qual
    nl: wat | waarom | hoe | welke | waar
    pl: co | dlaczego | jak | który | kto | gdzie | czy
    ru: что | почему | как | какой | кто | где | зачем | ли
    tr: neden | nasıl | hangi | kim | nerede | mı | mü
    ar: ماذا | لماذا | كيف | هل | من | أين
    zh: 吗 | 嗎 | 什么 | 什麼 | 怎么 | 哪 | 谁 | 呢
    ja: か | 何 | なぜ | どう | どこ
    ko: 왜 | 뭐 | 어떻게 | 까
    """,
    Kind.GENERATION: """
    en: plan # | generation # | gen # | plan generation # | plan gen # | to plan # | the plan #
    de: den plan # | generation nummer #
    es: el plan # | generación #
    it: piano #
    pt: plano #
    ru: план #
    zh: 计划 # | 計劃 #
    ja: プラン # | 計画 #
    ko: 계획 #
    """,
}
