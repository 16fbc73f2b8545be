"""The closed vocabulary of chat assent: every phrase the grammar knows, by kind and language (SPEC R3.7)."""

from __future__ import annotations

import enum
from collections.abc import Mapping


class Kind(enum.StrEnum):
    """What a phrase does in a message."""

    YES = "yes"
    """Says yes by itself; with more beside it the operator is asked."""
    OKAY = "okay"
    """A yes too, but no more than "heard" where the talk closes beside it ("ok thanks")."""
    GO = "go"
    """Orders the thing done; with unknown words in its clause it is an order for something else ("go back")."""
    FILL = "fill"
    """Changes nothing beside an assent or a refusal, and is neither alone."""
    CLOSE = "close"
    """Filler that closes or turns a talk, or takes leave: beside an okay alone, a doubt."""
    MILD = "mild"
    """Approval of tone only: filler beside an assent, a doubt alone."""
    ACK = "ack"
    """Says that it was read, or half agrees: filler beside an order, a doubt alone or beside a yes ("ok, got it")."""
    JOIN = "join"
    """Joins two parts: filler between them; at the end the sentence is not finished."""
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
    """Takes a part, or adds to it."""
    WHERE = "where"
    """Moves it elsewhere, or to other means: "on", "with"."""
    DOUBT = "doubt"
    """Undecided, an idiom, or a word that means yes and no."""
    ASK = "ask"
    """Begins a question."""
    TALK = "talk"
    """Asks for words and not for deeds: "explain"."""
    GENERATION = "generation"
    """Names a plan by its number; `#` stands for the number."""


WORDS: Mapping[Kind, str] = {
    Kind.YES: """
    en: yes | y | yep | yeah | yup | aye | sure | of course | certainly | absolutely
    en: definitely | agreed | i agree | fine by me | approve | approved | i approve | lgtm | looks good
    en: looks good to me | sounds good | sounds great | by all means | confirm | confirmed
    en: i confirm | accept | accepted | i accept | affirmative | permission granted | you may proceed
    en: approve plan | approve plan # | that works | works for me | sounds like a plan | i'm fine with that
    en: i'm ok with that | fine with me | approved by me | yea | sure thing
    en: looks fine | looks great | looks correct | good to go | you have my approval | you have my go | you have my ok
    en: i'm happy with that | i'm happy with the plan | i'm happy with it | i am happy with that
    en: i am happy with the plan | i am happy with it | i'm ok with it | i am ok with that | i am ok with it
    en: i'm fine with it | i am fine with that | i am fine with it | ok with me | okay with me | ok by me | okay by me
    en: that's ok with me | that's fine with me | that's fine by me | consider it approved | granted | authorized
    en: authorised | green light | thumbs up | the plan is good | the plan is fine
    en: the plan is ok | the plan is approved | plan approved | plan looks good | plan is good | plan is fine
    en: plan is ok | plan is approved | sounds good to me | yess | looks ok | looks okay | happy with the plan
    en: happy with that | plan # is fine | plan # is approved | plan # is ok | plan # is good
    de: geht klar | ja | jawohl | jep | klar | na klar | einverstanden | genehmigt | freigegeben
    de: gerne | gern | ich genehmige | ich stimme zu | natürlich | selbstverständlich | jo | jap
    de: jawoll | bin einverstanden | ich bin einverstanden | zugestimmt | bestätigt | ich bestätige | genehmige
    de: plan genehmigt | plan ist genehmigt | freigabe erteilt | ist in ordnung | klingt gut | sieht gut aus | nur zu
    de: aber klar | aber ja | aber sicher | aber gerne | sehr gerne | sehr gern | hiermit genehmigt | ist genehmigt
    de: ist ok | ist okay | geht in ordnung | bin dafür | ich bin dafür | passt so
    xx: ✅ | ✔ | +1 | ✓ | ☑ | 🫡
    fr: oui | ouais | bien sûr | approuvé | j'approuve | je confirme | validé
    fr: ouaip | certainement | absolument | tout à fait | ça me va | ça me convient | je suis d'accord
    fr: bien entendu | plan approuvé | le plan est approuvé | je valide | confirmé | accepté | j'accepte | accordé
    fr: feu vert | volontiers | carrément | c'est bon pour moi | bon pour moi | c'est d'accord | c'est validé
    fr: c'est ok pour moi | ok pour moi | c'est ok
    es: sí | claro | aprobado | apruebo | confirmo | por supuesto | sip | claro que sí
    es: desde luego | estoy de acuerdo | lo apruebo | plan aprobado | aceptado | acepto | confirmado | autorizado
    es: tienes mi aprobación | me parece bien | se ve bien | suena bien | luz verde | el plan está aprobado
    es: lo confirmo | conforme | aprueba
    it: sì | certo | certamente | approvato | confermo | d'accordo | sono d'accordo | ovviamente
    it: approvo | accetto | accettato | confermato | autorizzato | piano approvato | via libera | mi va bene
    it: mi sta bene | per me va bene | va bene per me | sembra buono | certo che sì | è approvato | approva
    pt: sim | com certeza | aprovado | aprovo | claro que sim | isso mesmo | concordo
    pt: de acordo | eu aprovo | plano aprovado | aceito | parece bom | por mim tudo bem
    pt: combinado
    nl: akkoord | goedgekeurd | zeker | jazeker | jawel | natuurlijk
    nl: ik ga akkoord | ik ben akkoord | mee eens | ik keur het goed | plan goedgekeurd | bevestigd
    nl: ik ben het ermee eens | klinkt goed | ziet er goed uit | zeker weten | ik keur het plan goed | graag | ja hoor
    sv: japp | visst | godkänt | godkänd | det går bra | absolut | naturligtvis | jag godkänner | låter bra
    da: godkendt | selvfølgelig | jeg godkender
    fi: kyllä | joo | hyväksytty | totta kai | hyväksyn
    pl: tak | zgoda | zatwierdzam | potwierdzam | oczywiście | zgadzam się | zatwierdzone
    pl: zatwierdzony | plan zatwierdzony | akceptuję | zaakceptowane | zatwierdzam plan | brzmi dobrze
    pl: wygląda dobrze | pasuje | potwierdzone | zatwierdzam plan #
    cs: ano | jasně | souhlasím | schvaluji | schváleno | jistě | samozřejmě | potvrzuji
    cs: schvaluji plán | schválen | plán schválen | potvrzeno | plán # schválen | schvaluji plán #
    ru: да | согласен | согласна | одобряю | одобрено | подтверждаю | конечно
    ru: разумеется | безусловно | я согласен | я согласна | годится | подходит | одобрен | утверждаю | утверждено
    ru: подтверждено | принимаю | разрешаю | добро | даю добро | выглядит хорошо | звучит хорошо | я одобряю
    ru: план утверждён
    uk: так | згоден | згодна | схвалюю | підтверджую | звичайно | звісно | схвалено | затверджую
    uk: я згоден | підтверджено | авжеж
    el: ναι | σύμφωνοι | εγκρίνω
    tr: evet | olur | onaylıyorum | onaylandı | kabul | kabul ediyorum | tabii | tabii ki | elbette
    tr: kesinlikle | uygun | uygundur | anlaştık | onay | onay verildi | onay veriyorum | plan onaylandı
    tr: kabul edildi | katılıyorum | onaylı | kabulüm | tabi
    ar: نعم | أجل | موافق | أوافق | أيوه | أيوا | طبعاً | بالطبع | بالتأكيد | أكيد | أنا موافق | موافقة
    ar: تمت الموافقة | معتمد | مقبول | أقبل | أؤكد | تم التأكيد | أنا موافقة | موافق عليه
    fa: بله | موافقم
    he: כן | מאשר | מאשרת | מאושר | כמובן | בטח | אני מאשר
    hi: हाँ | हां | स्वीकृत | बिल्कुल | मंज़ूर है
    zh: 可以 | 是 | 是的 | 同意 | 批准 | 没问题 | 沒問題 | 确认 | 確認 | 对 | 對 | 对的 | 我同意
    zh: 我批准 | 我确认 | 已批准 | 确定 | 当然 | 當然 | 通过 | 赞成 | 允许 | 可以的 | 批准了 | 同意了 | 都可以
    ja: はい | ええ | うん | 承認 | 承認します | いいですよ | いいよ | 承認しました | 承認済み
    ja: 同意します | 許可します | もちろん | ハイ | 賛成 | 承認する
    ko: 네 | 예 | 응 | 좋아 | 좋습니다 | 승인 | 승인합니다 | 승인해 | 동의합니다 | 동의해요
    ko: 허가합니다 | 승인함 | 승인했습니다 | 승인했어요 | 물론 | 물론입니다 | 물론이죠 | 당연하지 | 동의함
    id: setuju
    nb: godkjent
    """,
    Kind.OKAY: """
    en: ok | okay | okey | alright | all right | fine | okey dokey | okie dokie | okie
    de: alles klar | in ordnung | passt
    xx: 👍 | 👌 | 🆗
    fr: d'accord | ça marche | c'est bon | dac
    es: vale | está bien | de acuerdo
    it: va bene | vabbene
    pt: tudo bem | está bem | tá bom | está bom | beleza
    nl: oké | is goed | het is goed | dat is goed
    sv: okej
    fi: selvä
    pl: dobrze | w porządku
    cs: dobře | v pořádku | dobrá
    ru: хорошо | ладно | ок | окей | угу | ага
    uk: добре | гаразд
    el: εντάξει
    tr: tamam | tamamdır | peki
    ar: حسناً | تمام | طيب | ماشي | أوكي
    fa: باشه
    he: בסדר
    hi: ठीक है
    zh: 好 | 好的 | 行
    ja: オーケー | オッケー
    ko: 오케이 | 그래
    id: baik
    """,
    Kind.GO: """
    en: go | go ahead | go on | go for it | do it | do that | do this | do so | please do | just do it | proceed
    en: run it | run the plan | start | begin | resume | carry on | keep going | let's go
    en: let's do it | you can proceed | you can go ahead | you may go ahead | you can continue | let's do this
    en: make it so | ship it | do the plan | apply | apply the changes | apply them | run that | run this | run plan #
    en: run this plan | send it | fire away | you can start | you may start | you may continue
    en: you are authorized to proceed | you are cleared to proceed | feel free to proceed | let it run | let's proceed
    en: let's go ahead | let us proceed | let's start | let's run it | let's continue | get it done | get going
    en: get started | get on with it | roll it out | kick it off | full steam ahead | you can run it | you can do it
    de: los | los geht's | leg los | legen sie los | mach | mach's | machen | machen wir | weiter | weitermachen
    de: machen sie weiter | fortfahren | ausführen | führe es aus | führ es aus | starte | auf geht's | tu es
    de: tu das | führe den plan aus | fahr fort | fahre fort | fahren sie fort | mach schon | führ den plan aus
    de: führen sie den plan aus | führen sie es aus | führe den plan bitte aus | führ den plan bitte aus | starten
    de: starten sie | fang an | fangen sie an | beginne | beginnen | du kannst weitermachen | du darfst weitermachen
    de: du kannst loslegen | kannst loslegen | kannst weitermachen | sie können weitermachen | sie können fortfahren
    de: lass uns loslegen | weiter geht's | führe ihn aus | führ ihn aus | setz es um | setze es um | umsetzen
    de: na los | mach einfach weiter | plan ausführen | plan starten
    fr: vas-y | c'est parti | allez | on y va | continuez | fais-le | faites-le | procède | procédez | exécutez
    fr: lance | lancez | poursuivez | poursuis | allons-y | exécute | exécute le plan | lance-le | lancez-le | démarre
    fr: démarrez | commence | commencez | faites | tu peux y aller | vous pouvez y aller | tu peux continuer
    fr: vous pouvez continuer | tu peux commencer | fonce | applique | appliquez | applique-le | exécute-le
    fr: exécutez-le | poursuivre | continuer | exécuter | lancer | exécutez le plan | lance le plan | lancez le plan
    fr: lance le plan # | lancez le plan # | exécute le plan # | exécutez le plan #
    es: adelante | dale | hazlo | hágalo | proceda | continúa | sigue | siga | ejecuta | ejecútalo | venga | continúe
    es: continuar | proceder | ejecute | ejecutar | empieza | empiece | comienza | comience | inicia | arranca
    es: dale nomás | vamos | puedes continuar | puedes proceder | puede continuar | puede proceder | puedes hacerlo
    es: puedes empezar | hazlo ya | aplícalo | aplica | ejecútelo | hágase
    it: procedi | vai | avanti | fallo pure | esegui | prosegui | procedere | andiamo | lo faccia | continui
    it: eseguilo | esegua | avvia | inizia | comincia | puoi procedere | puoi continuare | puoi andare | puoi farlo
    it: può procedere | fallo ora | fallo adesso | fallo per favore | applica | applicalo
    pt: pode | pode fazer | vai em frente | vá em frente | pode seguir | pode ir | prossiga | faça
    pt: segue | manda ver | prosseguir | siga em frente | vamos lá | faça-o | executa | executar | comece | começa
    pt: inicie | bora | pode começar | pode mandar | faz | aplique
    nl: doe het | doe maar | ga door | ga je gang | ga verder | ga maar | voer uit | uitvoeren | ga maar door
    nl: ga uw gang | doorgaan | doe dat | doe dit | toe maar | voer het uit | voer het plan uit | doe het maar
    nl: begin maar | start maar | ga | je mag doorgaan | je kunt doorgaan | aan de slag | voer maar uit
    sv: kör | kör på | gör det | fortsätt | sätt igång | starta | kör igång
    da: gør det | fortsæt | kør | kør på | sæt i gang
    nb: gjør det | fortsett
    fi: jatka | tee se | aloita | anna mennä | suorita
    pl: śmiało | zrób to | rób | kontynuuj | wykonaj | działaj | dawaj | dalej | kontynuować | rób to | wykonaj plan
    pl: wykonać | wykonuj | uruchom | uruchom plan | startuj | zaczynaj | zacznij | do dzieła | jedziemy | idź dalej
    pl: możesz kontynuować | możesz zaczynać | możesz zacząć | możesz to zrobić | zrób | lecimy | wykonaj plan #
    pl: uruchom plan #
    cs: pokračuj | pokračujte | udělej to | proveď to | do toho | dělej | proveď | proveď plán | spusť | spusť to
    cs: spusť plán | začni | jdeme na to | jdi do toho | můžeš pokračovat | proveď plán # | spusť plán #
    ru: давай | давайте | действуй | действуйте | делай | делайте | сделай | выполняй | выполни | выполняйте
    ru: продолжай | приступай | приступайте | продолжайте | запускай | запускайте | поехали | вперёд | сделайте
    ru: продолжить | дальше | выполнить | исполняй | исполняйте | запусти | запустить | начинай | начинайте
    ru: можешь продолжать | можешь делать | можешь начинать | можно делать | можно начинать | можно продолжать
    ru: можете продолжать | можете начинать | погнали | валяй | применяй
    uk: роби | зроби це | виконуй | продовжуй | дій | продовжуйте | починай | почни | можеш продовжувати | дійте
    el: προχώρα | συνέχισε | κάν'το
    tr: devam | devam edin | yap | başla | çalıştır | uygula | yapın | yap şunu | yap bunu | bunu yap | başlayın
    tr: başlat | başlatın | uygulayın | yürüt | devam edebilirsin | devam edebilirsiniz | yapabilirsin
    tr: yapabilirsiniz | başlayabilirsin | devam et
    ar: تابع | استمر | نفّذ | ابدأ | تفضل | واصل | افعل ذلك | تابعي | استمري | أكمل | أكملي | نفذها | نفذي | قم بذلك
    ar: افعلها | انطلق | هيا | يلا | امض قدما | يمكنك المتابعة | ابدأ التنفيذ | يمكنك البدء
    he: תמשיך | קדימה | בצע | תמשיכי | תתחיל | בצע את זה
    hi: करो | आगे बढ़ो | कर दो | जारी रखो | शुरू करो | चलो
    zh: 执行 | 執行 | 继续 | 繼續 | 开始 | 開始 | 做吧 | 去做 | 干吧 | 进行 | 進行 | 运行 | 運行 | 动手 | 来吧 | 來吧
    zh: 就这样做 | 就这么办 | 就这么做 | 可以开始了
    ja: お願いします | お願い | やって | 進めて | 続けて | 実行 | 実行して | どうぞ | 続行
    ja: 続行して | 始めて | すすめて | つづけて | おねがいします | よろしく | これでお願いします | やってくれ
    ja: やりましょう | 開始して | ゴー | 進めましょう | そうしてください | 始めましょう | 実行してくれ | お進め
    ko: 진행 | 진행해 | 진행해주세요 | 진행해줘 | 진행합시다 | 계속 | 계속해 | 해줘 | 해주세요 | 하세요 | 실행해
    ko: 시작해 | 진행하십시오 | 계속해주세요 | 실행 | 실행해줘 | 실행해주세요 | 시작 | 시작해주세요 | 그렇게하세요
    ko: 그렇게해 | 그렇게해주세요 | 가자 | 진행해도됩니다 | 진행해도돼
    id: lanjut | lanjutkan | jalankan | silakan | laksanakan | teruskan
    fa: ادامه بده | انجام بده
    """,
    Kind.FILL: """
    en: please | pls | now | right away | then | nomos | oikos | it | this
    en: that | the plan | this plan | your plan | with it | with the plan | with this plan | as proposed
    en: as planned | as described | as shown | to plan | hi | hello | hey | sir | as suggested
    en: as you proposed | as you suggested
    en: good morning | to the plan | to this plan | for the plan | for this plan | according to plan
    en: immediately | at once
    xx: 🙂 | 🎉 | 🚀 | 😊 | 😀 | 😃 | 😄 | 🙌 | 🤝 | ✨ | 💪 | 🥳
    de: bitte | jetzt | dann | mal | den plan | der plan | es | das | wie geplant
    de: wie vorgeschlagen | hallo | ruhig | guten morgen
    de: guten tag | bitte schön | diesen plan | dieser plan | na dann | nach plan | gemäß plan
    de: sofort
    fr: s'il te plaît | s'il vous plaît | svp | maintenant | alors | le plan | comme prévu | bonjour
    fr: stp | ce plan | comme proposé | tout de suite
    es: por favor | ahora | pues | el plan | entonces | hola | con el plan | buenos días
    es: este plan | de una vez | con eso | según el plan | como propuesto
    it: per favore | adesso | ora | pure | allora | il piano | buongiorno
    it: questo piano | con il piano | come previsto | come da piano | come proposto | subito
    pt: agora | então | o plano | isso | olá | bom dia | este plano
    pt: com o plano | por gentileza | como planejado | como proposto
    nl: alsjeblieft | nu | het plan | alstublieft | dit plan
    nl: zoals gepland | zoals voorgesteld
    sv: snälla
    pl: proszę | teraz | więc | dzień dobry | bardzo proszę | ten plan | od razu
    pl: zgodnie z planem
    cs: prosím | teď | teď hned
    ru: пожалуйста | сейчас | ну | это | этого | план | тогда | привет | здравствуйте
    ru: добрый день | прямо сейчас | этот план | по плану | как планировалось | немедленно
    uk: будь ласка | зараз | це | привіт | за планом
    tr: lütfen | şimdi | planı | merhaba | hemen | bu planı
    tr: plana göre
    ar: من فضلك | الآن | الخطة | لو سمحت | على الخطة | مرحباً | رجاءً | حالاً | فوراً
    ar: حسب الخطة
    he: בבקשה | עכשיו
    hi: कृपया | अब
    zh: 吧 | 请 | 請 | 啊 | 现在 | 現在 | 计划 | 計劃 | 你好 | 马上 | 立即 | 立刻 | 呀 | 您好 | 这个计划
    zh: 麻烦你 | 按计划 | 按照计划
    ja: です | ね | よ | 今 | ください | 計画 | こんにちは | 今すぐ | すぐに
    ja: 計画を | プランを | この計画を | この計画で | それで | 計画通りに | 計画どおりに | そのまま
    ja: 予定通り
    ko: 요 | 지금 | 부탁해요 | 부탁합니다 | 어서 | 계획 | 부탁드립니다 | 안녕하세요 | 계획을
    ko: 이계획을 | 바로 | 계획대로 | 예정대로
    id: sekarang | tolong
    """,
    Kind.CLOSE: """
    en: so | thanks | thank you | thx | thank you very much | many thanks | much appreciated | cheers
    xx: 🙏
    de: danke | vielen dank | danke schön | dankeschön | danke dir
    fr: merci | merci beaucoup | salut | bonsoir
    es: gracias | muchas gracias
    it: grazie | grazie mille | ciao
    pt: obrigado | obrigada | muito obrigado
    nl: dank je | bedankt | dank u | hartelijk dank
    sv: tack | tack så mycket | hej
    pl: dziękuję | dzięki | cześć
    cs: děkuji | děkuju | díky | ahoj
    ru: спасибо | спасибо большое | большое спасибо
    uk: дякую | дуже дякую
    tr: teşekkürler | teşekkür ederim | çok teşekkürler | sağ ol
    ar: شكراً | شكراً جزيلاً
    he: תודה
    hi: धन्यवाद
    zh: 谢谢 | 謝謝 | 多谢
    ja: ありがとう | ありがとうございます | どうも
    ko: 감사합니다 | 고마워 | 고맙습니다
    """,
    Kind.MILD: """
    en: good | great | perfect | nice | cool | excellent | right | correct | exactly
    en: oh | that's right | that's correct | good plan | great plan | nice plan | very good | awesome | excellent plan
    en: indeed | that's fine | it's fine | that's ok | it's ok | that is ok | that is fine | it's okay | that's okay
    en: all good | very well
    de: super | prima | perfekt | gut | genau | sehr gut | richtig | stimmt | sicher | guter plan | toll | wunderbar
    de: klasse | alles gut | weiter so | mach weiter so | machen sie weiter so | so weiter
    fr: parfait | bien | exactement | très bien | bon | génial | c'est exact
    es: perfecto | bueno | muy bien | exacto | correcto | cierto | excelente | buen plan | todo bien
    it: perfetto | bene | ottimo | benissimo | esatto | giusto | corretto | sicuro | perfettamente
    pt: perfeito | bom | ótimo | exato | correto | muito bem
    nl: goed | klopt | uitstekend | mooi | precies | goed plan | heel goed
    ru: отлично | точно | верно | правильно | всё верно | всё хорошо | прекрасно | супер | замечательно | идёт
    ru: пойдёт
    uk: чудово
    zh: 很好 | 不错 | 看起来不错 | 很棒 | 太好了 | 没错
    ja: いいですね | その通り | そうです | 素晴らしい
    ko: 좋네요 | 맞아 | 맞습니다 | 좋은계획
    sv: bra
    da: fint
    pl: świetnie | pewnie | bardzo dobrze | dokładnie | tak dalej
    xx: 💯 | 👏
    cs: výborně | správně
    tr: doğru | aynen | iyi | güzel | harika | çok iyi | hadi | haydi
    ar: صحيح | جيد | ممتاز | رائع
    """,
    Kind.ACK: """
    en: got it | understood | noted | roger
    en: copy that | yeah sure | sure yeah | yes so | yeah so
    de: verstanden | zur kenntnis genommen
    fr: compris | bien reçu | c'est noté | bien noté | entendu
    es: entendido | anotado | recibido
    it: capito | ho capito | ricevuto
    pt: entendi
    nl: begrepen | genoteerd
    pl: rozumiem | zrozumiałem | zrozumiano
    cs: rozumím
    ru: понятно | понял | поняла | ясно | принято
    uk: зрозуміло | зрозумів
    tr: anladım | anlaşıldı
    ar: فهمت | مفهوم
    zh: 知道了 | 明白 | 了解 | 收到 | 明白了
    ja: 了解しました | わかりました | 承知しました | 確認しました | 分かりました
    ko: 알겠습니다 | 알겠어요 | 확인 | 확인했습니다 | 알았어
    """,
    Kind.JOIN: """
    en: and
    de: und
    fr: et
    it: e
    sv: och
    da: og
    ru: и
    tr: ve
    """,
    Kind.NO: """
    en: no | n | nope | nah | no way | reject | rejected | refuse | refused | deny | denied | decline | declined
    en: disapprove | disapproved | i refuse | i reject | never mind | nevermind | negative | forget it
    en: leave it | absolutely not | of course not | certainly not | definitely not | rather not | not at all
    en: i decline | i disapprove | i disagree | i don't agree | i do not agree | disagree | i'd rather not
    en: i would rather not | better not | forget about it | leave it alone | scrap that | scrap it | drop it | skip it
    en: thumbs down | don't you dare | you must not proceed | you may not proceed | you cannot proceed
    en: you can't proceed | i did not approve | i didn't approve | i never said yes | i did not say yes
    en: nothing is approved | bad idea | bad plan | wrong plan | this is wrong | that's wrong | not like this
    en: not like that | do nothing | approve nothing | not a chance | under no circumstances | hard no | no deal
    en: i veto | veto | that's not ok | it's not ok | don't run anything | do not run anything | definitely no
    en: absolutely no
    xx: 👎 | ❌ | 🚫 | ⛔ | 🙅
    de: nein | nee | abgelehnt | ablehnen | ich lehne ab | auf keinen fall | lass es | lass das | ich lehne das ab
    de: ich lehne den plan ab | auf gar keinen fall | keinesfalls | kommt nicht in frage | vergiss es | lass es sein
    de: lieber nicht | besser nicht | ich bin nicht einverstanden | ich stimme nicht zu | keine freigabe
    de: das ist falsch | falsch | führ es nicht aus | führe es nicht aus | führe den plan nicht aus | ich bin dagegen
    de: bin dagegen | unter keinen umständen | bloß nicht | ja nicht | verworfen
    fr: non | je refuse | pas question | ne le faites pas | ne fais rien
    fr: surtout pas | nan | pas du tout | fais pas ça | le fais pas | n'y va pas | n'y allez pas | n'exécute pas
    fr: n'exécutez pas | rejeté | je rejette | je n'approuve pas | je ne suis pas d'accord | hors de question
    fr: laisse tomber | oublie | oublie ça | en aucun cas | mauvaise idée | je n'ai pas dit oui | c'est non
    es: no lo hagas | no lo haga | no hagas eso | no hagas nada | rechazo | rechazado | de ninguna manera | no sigas
    es: no continúes | no procedas | no ejecutes | no lo ejecutes | para nada | ni hablar | en absoluto | lo rechazo
    es: mejor no | no quiero | olvídalo | déjalo | no dije que sí | no he dicho que sí | mala idea | incorrecto
    es: ni loco
    it: rifiuto | rifiutato | non farlo | non lo fare | assolutamente no | non continuare | non eseguire
    it: non andare avanti | per niente | niente affatto | respinto | meglio di no | lascia stare | lascia perdere
    it: sbagliato | per carità | non fare niente | non ho detto sì | neanche per sogno | non eseguirlo
    pt: rejeitado | recuso | nem pensar | de jeito nenhum | de modo algum | rejeito | recusado | melhor não | errado
    pt: esquece | esqueça | deixa pra lá | deixa para lá | má ideia | de forma alguma
    nl: nee hoor | afgewezen | geweigerd | neen | niet doen | ga niet door | voer het niet uit | zeker niet | nooit
    nl: absoluut niet | helemaal niet | liever niet | beter niet | afgekeurd | ik weiger | ik ga niet akkoord
    nl: laat maar | vergeet het | geen sprake van | voer het plan niet uit | slecht idee
    sv: nej | absolut inte | aldrig | avslås
    da: afvist
    nb: nei
    pl: odrzucam | odmawiam | nie rób tego | nie uruchamiaj | nigdy | w żadnym razie | w żadnym wypadku
    pl: absolutnie nie | lepiej nie | odrzucone | zapomnij | daj spokój | nie ma zgody | niezatwierdzone | zostaw to
    pl: nie chcę | zły pomysł | proszę tego nie robić
    cs: zamítám | nedělej to | nikdy | v žádném případě | zamítnuto | odmítám | nesouhlasím | neschvaluji | nepokračuj
    cs: neprováděj | nespouštěj | raději ne | nech to
    ru: нет | отклонено | отклоняю | отказ | нельзя | не надо | не нужно | не стоит | ни в коем случае | неа
    ru: ни за что | отказываюсь | отклонить | отклонён | я не согласен | лучше не надо | лучше нет | забудь | оставь
    ru: брось | не хочу | против | я против | ни в коем разе | неверно | неправильно | не вздумай
    uk: ні | відхиляю | не треба | не роби цього | відхилено | ніколи | у жодному разі | відмовляюсь
    el: όχι
    tr: hayır | reddediyorum | reddedildi | olmaz | yok | bunu yapma | sakın | devam etmeyin | çalıştırma | uygulama
    tr: başlama | başlatma | asla | kesinlikle hayır | olmasın | istemiyorum | ret | onaylamıyorum | onaylanmadı
    tr: kabul etmiyorum | kabul edilmedi | katılmıyorum | yanlış | unut gitsin | boş ver | boşver | değil
    tr: uygun değil | tamam değil | evet demedim | yapmayalım | kabul değil
    ar: لا | كلا | مرفوض | أرفض | لا تفعل | لا تفعل ذلك | لا تنفذ | لا تتابع | لا تستمر | لا تكمل | لا تبدأ | مستحيل
    ar: رفض | غير موافق | لست موافقاً | لم أوافق | غير مقبول | لم أقل نعم | انس الأمر | لا داعي | ليس جيداً | خطأ
    ar: مرفوضة | لا تفعلها | لا تنفذها | أبدا
    fa: نه | انجام نده
    he: לא | אל תעשה | בשום אופן לא
    hi: नहीं | मत करो | बिल्कुल नहीं
    zh: 不 | 不要 | 不用 | 拒绝 | 拒絕 | 否 | 別 | 别 | 不了 | 算了 | 没有 | 不用了 | 别做 | 不要做 | 不必 | 我不同意
    zh: 不能 | 请勿 | 勿动 | 我拒绝 | 否决 | 驳回 | 没批准 | 我没说是 | 我没有同意 | 错 | 错了 | 绝对不行 | 絕對不行
    zh: 千万别 | 禁止 | 反对 | 不准 | 不许 | 免了
    ja: いいえ | いや | だめ | ダメ | やめて | やめよう | やらないで | しないで | 拒否 | 却下 | 続けないで
    ja: 進めないで | 嫌だ | 駄目 | やめろ | やめましょう | やらない | やるな | するな | 承認しない | 承認しません
    ja: 承認できません | 同意しません | 同意しない | 反対 | 却下します | 拒否します | 不可 | 違います | 違う | 間違い
    ja: 要りません | いりません | 必要ない | 必要ありません | 絶対だめ | お断りします | 許可しません | 実行しない
    ja: 実行しません | 嫌です
    ko: 아니 | 아니오 | 아뇨 | 하지마 | 하지마세요 | 안돼 | 안됩니다 | 거부 | 싫어 | 하지말아 | 하지마라
    ko: 하지마십시오 | 절대안돼 | 거부합니다 | 거절 | 거절합니다 | 반대 | 반대합니다 | 승인안함 | 승인하지않습니다
    ko: 승인안합니다 | 승인안해 | 승인하지마세요 | 동의하지않습니다 | 동의안해 | 필요없어요 | 아닙니다 | 틀렸어
    ko: 잊어버려 | 안해 | 안할래
    id: tidak | jangan
    fi: älä tee sitä
    """,
    Kind.NOT: """
    en: not | don't | do not | i don't | i do not | never | cannot | can't | won't | i won't | must not
    en: mustn't | can not | shouldn't | should not | wouldn't | would not | isn't | is not
    de: nicht | kein | keine | niemals | nie | keinen | keiner | keinem
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
    en: stop | halt | cancel | abort | cancelled | canceled | freeze | quit | cease | kill it | enough | cut it out
    en: stand down | cancel plan # | stop plan # | abort plan #
    xx: 🛑 | ✋ | ⏹
    de: stopp | abbrechen | abbruch | anhalten | aufhören | hör auf | halte an | stornieren | brich ab
    de: brechen sie ab | hören sie auf | unterbrechen | unterbrich
    fr: arrête | arrêtez | annule | annulez | annuler | stoppe | halte | interromps | interrompez | stoppez | arrêter
    fr: abandonne
    es: para | detente | deténgase | alto | cancela | cancelar | basta | detén | detener | cancelado | aborta
    es: abortar | pausa | interrumpe | frena | párate
    it: ferma | fermati | fermo | annulla | annullare | interrompi | alt | fermare | si fermi | annulli | smetti
    it: basta così
    pt: pare | cancele | parem | parar | interrompa | chega | interromper | pára tudo
    nl: annuleer | annuleren | afbreken | breek af | hou op | pauze | stop daarmee | stoppen
    sv: stoppa | avbryt | stanna | avbryt körningen | sluta
    da: afbryd | stands
    fi: seis | peruuta | lopeta | keskeytä
    pl: zatrzymaj | zatrzymaj się | anuluj | przerwij | przestań | stój | anulować | wstrzymaj | pauza | dość
    pl: zatrzymajcie | przerwać
    cs: zastav | zrušit | zruš | přestaň | stůj | přeruš | zastavit | dost
    ru: стоп | остановись | остановитесь | остановить | останови | отмена | отмени | отменить | прекрати
    ru: хватит | стой | стойте | прекратить | прерви | прервать | пауза | остановка | прекращай | тормози | хватит уже
    uk: зупинись | скасувати | скасуй | припини | стій | досить | зупини
    el: σταμάτα | ακύρωσε
    tr: dur | durun | iptal | durdur | vazgeç | durdurun | iptal edin | kes | yeter | ara ver | duraklat
    ar: توقف | قف | ألغ | إلغاء | أوقف | إيقاف | ألغي | كفى | أوقفي | توقفي | أوقف كل شيء
    he: עצור | תעצור | בטל | תפסיק | עצרי | די
    hi: रुको | रुकिए | रद्द करो | बंद करो | रोको | बस करो
    zh: 停 | 停止 | 停下 | 取消 | 中止 | 住手 | 别动 | 別動 | 停一下 | 先别动 | 先別動 | 打住 | 停下来 | 终止 | 暂停
    zh: 停手 | 快停 | 撤销
    ja: 止めて | 止まれ | ストップ | 中断 | キャンセル | 止まって | とめて | 停止して | 一時停止 | 取り消し
    ja: 取り消して | キャンセルして | 中断して | 中止して
    ko: 멈춰 | 멈추세요 | 중지 | 중단 | 취소 | 정지 | 그만 | 스톱 | 그만해 | 멈춰주세요 | 중지하세요 | 중단하세요
    ko: 취소해 | 취소해주세요 | 취소하세요 | 일시정지 | 그만둬 | 정지해 | 중지해
    id: berhenti | batalkan | hentikan | stop dulu | hentikan semua
    nb: stans
    fa: بس کن | توقف کن
    """,
    Kind.WAIT: """
    en: wait | hold on | hang on | one moment | pause | not so fast | hold your horses | just a moment | hold
    en: hang tight | one second | one sec | hold off | just a second | just a minute | a moment please
    de: warte | warten | moment | einen moment | warten sie | warte kurz | einen augenblick | augenblick | momentchen
    fr: attends | attendez | attendre | un instant | une minute | attends un peu | une seconde
    fr: un moment s'il te plaît | patiente
    es: espera | espere | un momento | espérate | un segundo | un minuto | aguanta | espera un poco
    it: aspetta | aspetti | attendi | un attimo | un secondo | attenda
    pt: aguarde | espere um pouco | um momento | um minuto | espera aí | um segundo | calma
    nl: wacht | wacht even | wacht eens | even wachten | momentje | een moment | ogenblik
    sv: vänta | vänta lite | ett ögonblick
    da: vent
    fi: odota
    pl: czekaj | poczekaj | zaczekaj | chwileczkę | chwila | chwilę | sekundę | momencik
    cs: počkej | počkejte | čekej | chvilku | okamžik
    ru: подожди | подождите | погоди | погодите | ждите | жди | постой | минутку | минуту | секунду | обожди
    ru: секундочку
    uk: зачекай | зачекайте | чекай | хвилинку | почекай | почекайте
    el: περίμενε
    tr: bekle | bekleyin | bir dakika | bir saniye | bekle biraz | bi dakika
    ar: انتظر | انتظري | لحظة | دقيقة | مهلاً | لحظة واحدة | انتظر قليلاً
    he: חכה | רגע | חכי | רק רגע
    hi: ठहरो | प्रतीक्षा करो
    zh: 等 | 等一下 | 稍等 | 慢着 | 等一等 | 且慢 | 稍等一下 | 等下
    ja: 待って | ちょっと待って | 待て | まって | 少々お待ち | 待ってて | ちょっと待った | お待ち
    ko: 기다려 | 기다리세요 | 잠깐 | 잠깐만 | 잠시만 | 기다려주세요 | 잠시기다려 | 기다려줘
    id: tunggu
    """,
    Kind.WHAT: """
    en: everything | all | there | the run | running | working | a minute | a moment | a second | a sec | a bit
    de: alles
    fr: tout
    es: todo
    it: tutto
    pt: tudo
    ru: всё
    """,
    Kind.LATER: """
    en: later | tomorrow | yet | not now | tonight | soon | next week | another time | some other time
    en: in a minute | in an hour | after lunch | this evening | on monday | this afternoon | not today | not this week
    en: next month
    de: später | spaeter | morgen | noch nicht | jetzt nicht | nicht jetzt | heute abend | nachher | erst morgen
    de: bald | nicht heute | demnächst
    fr: plus tard | demain | pas encore | pas maintenant | ce soir | tout à l'heure | bientôt | pas aujourd'hui
    fr: pas tout de suite
    es: más tarde | luego | mañana | todavía no | aún no | ahora no | después | pronto | hoy no | esta noche
    it: più tardi | dopo | domani | non ancora | non adesso | non ora | presto | stasera | più avanti
    pt: mais tarde | depois | amanhã | ainda não | agora não | logo | hoje não | hoje à noite
    nl: nog niet | nu niet | straks | vanavond | niet nu | niet vandaag
    sv: senare | imorgon | inte än | inte nu
    da: senere | ikke endnu
    pl: później | jutro | jeszcze nie | nie teraz | potem | wieczorem | nie dzisiaj | zaraz
    cs: později | zítra | ještě ne | teď ne
    ru: потом | позже | завтра | ещё не | пока нет | пока не | не сейчас | попозже | вечером | не сегодня | скоро
    uk: пізніше | ще ні | не зараз | потім
    tr: sonra | yarın | henüz değil | şimdi değil | bugün değil | birazdan | akşam | şimdilik hayır
    ar: لاحقا | غدا | ليس بعد | ليس الآن | بعدين
    he: אחר כך | מחר | עדיין לא | לא עכשיו
    hi: बाद में | कल | अभी नहीं
    zh: 以后 | 以後 | 稍后 | 稍後 | 明天 | 还没 | 還沒 | 等会儿 | 晚点 | 待会 | 还不行 | 先别 | 先不要 | 现在不
    zh: 回头 | 过会儿 | 暂时不要 | 先等等
    ja: 後で | あとで | 明日 | まだ | 今はやめて | 今じゃない | 今度 | 今はだめ
    ko: 나중에 | 내일 | 아직 | 이따가 | 지금말고 | 지금은안돼
    id: nanti | besok
    """,
    Kind.IF: """
    en: if | when | once | unless | after | until | till | as soon as | provided | assuming | as long as
    en: in case | before | given that | whenever | subject to | in the event | wherever
    de: wenn | falls | sobald | nachdem | sofern | solange | bevor | erst
    fr: quand | dès que | après | à condition | lorsque | une fois | si jamais | pourvu que | dès lors
    fr: à condition que | tant que
    es: cuando | siempre que | en cuanto | una vez | a condición | después de | después que
    it: quando | purché | appena | a patto che | a condizione | nel caso | finché | dopo il | dopo la | dopo che
    pt: se | assim que | desde que | contanto que | caso | depois que | depois do | depois da | depois de
    nl: als | zodra | wanneer | nadat | mits | tenzij | indien
    sv: om | när
    da: hvis | når
    pl: jeśli | jeżeli | gdy | kiedy | jak tylko | o ile | pod warunkiem | w razie
    cs: pokud | když | jestli | až | jakmile
    ru: если | когда | после | при условии | как только | при условии что | в случае
    uk: якщо | коли | після
    tr: eğer | ise | bitince | güvenliyse | bittiyse | yedekten sonra
    ar: إذا | عندما | لو | بعد | بشرط | حالما
    he: אם | כאשר
    hi: अगर | यदि | जब
    zh: 如果 | 要是 | 除非 | 之后 | 后 | 若 | 假如
    ja: もし | たら | なら | 場合 | れば | 次第
    ko: 면 | 경우
    id: jika | kalau
    """,
    Kind.PART: """
    en: but | except | only | without | just | skip | step | steps | step # | steps # | instead | also | too
    en: other | first | last | the first | the last | every | always | future | both | half
    en: partially | plus | rather | however | do step | do steps | do only | do just | run only | run step | run steps
    en: all later | later plans | later ones | as well | apart from | minus | though | although | additionally
    en: others | elsewhere | another | forever | from now on | each time | partly | mostly | and later | do everything
    en: run everything | do both | do all | run all | do the first | from step | at step
    de: aber | außer | nur | ohne | schritt | schritt # | stattdessen | auch | immer | alle | statt | zuerst | bis auf
    de: zusätzlich | außerdem | lediglich | jedes mal | ab jetzt | dazu noch | allen
    fr: mais | sauf | seulement | sans | étape | étape # | l'étape # | aussi | toujours | plutôt | tous
    fr: uniquement | juste | toutes | désormais | à part | hormis | excepté | également | fais seulement | fais juste
    es: pero | excepto | sólo | sin | paso # | también | siempre | menos | salvo | todos | todas | además | únicamente
    es: a partir de ahora | sino | y luego | haz sólo
    it: ma | tranne | senza | passo # | anche | invece | solamente | soltanto | eccetto | tutti | tutte | sempre
    it: inoltre | fai solo
    pt: mas | exceto | só | apenas | sem | também | somente | além disso
    nl: behalve | alleen | zonder | stap # | ook | altijd | maar | slechts | bovendien | enkel | voortaan
    sv: men | utom | bara | utan | steg #
    da: kun | uden | trin #
    pl: ale | oprócz | tylko | bez | krok # | też | zawsze | zamiast | wszystko | wszystkie | poza | jedynie
    pl: dodatkowo | wszystkich
    cs: kromě | jen | pouze | také | vždy | všechny | všechno
    ru: но | кроме | только | без | шаг # | также | всегда | вместо | за исключением | лишь | ещё и | отныне | впредь
    ru: и потом
    uk: але | крім | тільки | лише | крок # | також | завжди | окрім | всі
    tr: ama | hariç | sadece | yalnızca | adım # | tüm | hepsi | hepsine | her zaman | dışında | ayrıca | bütün
    ar: لكن | ولكن | إلا | فقط | بدون | خطوة | الخطوة | أيضاً | دائماً | كل | جميع | باستثناء | ما عدا | سوى | غير
    ar: دائما | أيضا
    he: אבל | רק | בלי
    hi: लेकिन | सिर्फ | केवल | बिना
    zh: 但 | 除了 | 只 | 不过 | 不過 | 步 | 所有 | 另外 | 全部 | 总是 | 以后都 | 仅 | 还有 | 永远 | 每次 | 一律
    ja: でも | だけ | 以外 | ただし | けど | が | ステップ | すべて | 常に | いつも | のみ | 除いて | 除く | 毎回
    ja: 全て
    ko: 하지만 | 만 | 빼고 | 제외 | 그런데 | 단계 | 모두 | 모든 | 항상 | 말고 | 전부 | # 단계
    id: tapi | hanya | kecuali
    """,
    Kind.WHERE: """
    en: on | with | onto | against
    de: auf | bei | mit | für
    fr: sur | avec | chez | pour
    es: en | sobre | con
    it: su | sul | per
    pt: em | com
    nl: op | met | bij | voor
    pl: na | z | dla
    ru: на | с | для
    ar: على | في
    """,
    Kind.DOUBT: """
    en: maybe | perhaps | probably | possibly | hmm | hm | mm | why not | yeah right | i guess | i suppose
    en: i think | not sure | i'm not sure | i am not sure | i don't know | dunno | whatever | if you say so
    en: up to you | your call | no idea | as if | um | uh | kind of | sort of | no problem | not bad
    en: if you want | if you must | ya | i see | if you like | yeah yeah | sure sure | meh | kinda | k | unsure | idk
    en: depends | no objections | no objection | i have no objection | i have no objections | no worries
    en: i don't mind | i do not mind | i don't disagree | i don't object | i do not object | no reason not to
    en: could be worse | can't complain | no doubt | not no | do what you want | do whatever you want
    en: do what you like | do what you think is best | you decide | as you like | as you wish | whatever you want | kk
    en: oh great | no issues | no issue | lol | i trust you | don't not do it | do whatever you like | don't stop
    en: do not stop | don't wait | why don't you | i don't see why not | what could go wrong | i'd say yes
    en: in principle | in theory | i would say yes | i'd say so | no complaints | i don't care | i do not care
    en: it's up to you | i hope so | you got it | oh really | i'd rather you did | already | if you think so
    en: could be | might be | we'll see | proved | rob | selva | do anything you want | well | if you insist
    en: if necessary | if possible | do as you please | as you please | suit yourself | don't care | oh sure | oh yeah
    en: as discussed | as usual
    xx: 🤔 | 🤷 | 🙃 | 🙄 | 😂 | 😬
    de: vielleicht | weiß nicht | ich weiß nicht | mal sehen | warum nicht | naja | jein | eventuell
    de: von mir aus | ich glaube | ich denke | meinetwegen | kein problem | ja ja | keine ahnung | wenn du meinst
    de: wie du willst | wie du meinst | keine einwände | mach was du willst | wie sie meinen | nichts dagegen
    de: ich habe nichts dagegen | nicht schlecht | jaja | joa | kannst du machen | im prinzip | wird schon | schon
    de: ich bin mir nicht sicher | bin mir nicht sicher | egal | mir egal | mir ist es egal | sicher doch
    de: spricht nichts dagegen | na gut | kannst du so machen
    de: mach's gut | mach es gut | wie besprochen
    fr: je pense | je crois | peut-être | pourquoi pas | bof | je ne sais pas | pas de problème | oui oui
    fr: je crois que oui | je pense que oui | je sais pas | comme tu veux | comme vous voulez | mouais | euh | pas mal
    fr: pas d'objection | aucune objection | fais ce que tu veux | ça dépend | je suppose
    fr: allez salut | allez ciao | allez bonsoir
    es: como quieras | supongo | creo que sí | quizás | quizá | tal vez | por qué no | no sé | a lo mejor
    es: fallo | puede ser | puede que sí | supongo que sí | no lo sé | no estoy seguro | no estoy segura | depende
    es: no hay problema | no pasa nada | no está mal | haz lo que quieras | como quiera | me da igual | qué más da
    es: vamos bien
    it: credo di sì | penso di sì | forse | perché no | non so | boh | se vuoi | magari | può darsi | non lo so
    it: non sono sicuro | non sono sicura | come vuoi | dipende | nessun problema | non c'è problema
    it: nessuna obiezione | non male | fai quello che vuoi | fai come vuoi | mah | suppongo | fa lo stesso
    it: andiamo bene
    pt: acho que sim | talvez | por que não | não sei | quem sabe | pode ser | não tenho certeza | se quiser
    pt: como quiser | faça o que quiser | não há problema | tanto faz | nada contra | nada mal | suponho
    nl: misschien | waarom niet | misschien wel | ik denk het | ik denk van wel | ik weet het niet | weet niet
    nl: geen idee | als je wilt | tja | nou ja | als jij het zegt | doe wat je wilt | geen probleem | geen bezwaar
    nl: niet slecht | maakt niet uit | zoals je wilt
    sv: kanske | varför inte | jag vet inte | inga problem
    da: måske | det ved jeg ikke | intet problem
    pl: może | czemu nie | nie wiem | chyba | być może | nie jestem pewien | nie jestem pewna | jak chcesz
    pl: jeśli chcesz | zależy | rób co chcesz | no tak | nieźle | nie ma problemu | nie ma sprawy
    pl: nie mam nic przeciwko | dlaczego nie
    pl: i tak dalej
    cs: možná | proč ne | nevím | asi | žádný problém | není problém | jak chceš | nejsem si jistý
    ru: может быть | может | наверное | почему бы и нет | не знаю | возможно | ну да | да ну | как хочешь | наверно
    ru: думаю да | не уверен | не уверена | я не уверен | если хочешь | смотря как | хм | да ладно | почему нет
    ru: делай что хочешь | нет проблем | не вопрос | не возражаю | не против | я не против | нет возражений | неплохо
    ru: можно | всё равно | пожалуй | вроде да | ну ладно
    uk: можливо | мабуть | може | чому ні | чому б і ні | немає проблем | не проти | як хочеш
    tr: belki | bilmiyorum | neden olmasın | galiba | sanırım | emin değilim | sen bilirsin | istersen | fark etmez
    tr: sorun değil | sorun yok | fena değil | itirazım yok | niye olmasın | buyur | buyurun | oldu | nasıl istersen
    tr: olabilir
    ar: ربما | لا أعرف | لا أدري | إن شاء الله | قد يكون | لست متأكداً | كما تريد | لم لا | لا مشكلة | لا مانع
    ar: لا بأس | على راحتك | لست متأكدا | ابدا
    he: אולי | לא יודע
    hi: शायद | पता नहीं
    zh: 也许 | 也許 | 可能 | 随便 | 隨便 | 不知道 | 再说 | 不一定 | 嗯 | 好吧好吧 | 或许 | 大概 | 不确定 | 我不确定
    zh: 随你 | 看情况 | 为什么不 | 没有意见 | 没意见 | 无所谓 | 应该吧 | 呵呵 | 都行 | 为什么不呢 | 也行
    ja: 大丈夫 | いい | たぶん | 多分 | かも | かもしれない | どうかな | わからない | うーん | 結構
    ja: けっこうです | おそらく | わかりません | どうでしょう | 問題ない | 問題ありません | 異議なし | 任せます
    ja: どっちでもいい | 別に
    ko: 아마 | 글쎄 | 괜찮습니다 | 괜찮아 | 모르겠어요 | 됐어 | 아마도 | 잘모르겠어 | 왜안돼 | 문제없어 | 문제없습니다
    ko: 마음대로해 | 그럴걸 | 아무거나 | 그러든지
    id: mungkin
    fa: شاید
    """,
    Kind.ASK: """
    en: what | why | how | which | who | where | whether | when will | when do | when does | when can | when should
    en: whose | whom
    de: was | warum | wieso | wie | welche | welcher | wer | wo | wann | ob | soll | wessen | welches | welchen
    de: weshalb
    fr: quoi | pourquoi | comment | quel | quelle | qui | où | quels | quelles | combien | qu'est-ce
    es: qué | cómo | cuál | quién | dónde | cuándo | cuánto
    it: cosa | perché | come | quale | chi | dove | quanto | quali
    pt: quem | onde | qual | por quê | quais
    nl: wat | waarom | hoe | welke | waar | welk | hoeveel
    pl: co | dlaczego | jak | który | kto | gdzie | czy | ile | jaki | która | które
    ru: что | почему | как | какой | кто | где | зачем | ли | какая | какие | сколько | чего | чем | разве
    tr: neden | nasıl | hangi | kim | nerede | mı | mü | ne zaman | niye | kaç | neresi
    ar: ماذا | لماذا | كيف | هل | من | أين | متى | أي | كم
    zh: 吗 | 嗎 | 什么 | 什麼 | 怎么 | 哪 | 谁 | 呢 | 多少 | 几
    ja: か | 何 | なぜ | どう | どこ | 誰 | いつ | どれ
    ko: 왜 | 뭐 | 어떻게 | 까 | 누가 | 언제 | 어디 | 어느 | 나요
    cs: proč | kdo | kde | který
    uk: чому | що | як | хто | де | чи
    """,
    Kind.TALK: """
    en: explain | explaining | explanation | tell | show | describe | discuss | talk | talking | elaborate | clarify
    en: summarize | summarise | discussing | describing | ask | asking
    de: erkläre | erklären | erklär | zeig | zeige | sag | sage | erzähl | beschreibe | diskutieren | erläutere
    fr: explique | expliquez | expliquer | explication | dis | montre | montrez | décris
    es: explica | explícame | explicando | dime | muestra | explicar | cuéntame
    it: spiega | spiegami | spiegare | dimmi | mostra | descrivi | mostrami
    pt: diga | mostre
    nl: uitleggen | uitleg | leg uit | vertel | toon
    pl: wyjaśnij | wyjaśnianie | powiedz | pokaż | opisz | opowiedz
    cs: vysvětli | řekni | ukaž
    ru: объясни | объясните | объяснять | расскажи | покажи | скажи | опиши | поговорим
    uk: поясни | розкажи
    tr: açıkla | açıklamaya | anlat | göster | söyle
    ar: اشرح | الشرح | أخبرني | قل
    zh: 解释 | 說明 | 说明 | 告诉 | 讲 | 解釋
    ja: 説明 | 教えて | 見せて
    ko: 설명 | 알려 | 보여
    """,
    Kind.GENERATION: """
    en: plan # | generation # | gen # | plan generation # | plan gen # | to plan # | the plan # | with plan #
    en: this plan # | plan number # | for plan #
    de: den plan # | generation nummer # | plan nummer # | dem plan # | zu plan #
    es: el plan # | generación # | al plan #
    it: piano # | il piano # | al piano #
    pt: plano # | o plano # | ao plano #
    ru: план #
    zh: 计划 # | 計劃 #
    ja: プラン # | 計画 # | プラン # を | 計画 # を
    ko: 계획 # | 계획 # 을 | 계획 # 를
    fr: le plan # | plan numéro # | au plan #
    ar: الخطة # | على الخطة #
    """,
}
