"""Texts of our own: what the small tokenizers are trained on, and what they are
asked to cut up."""
import random

SENTENCES = [
    "The harbour lamp turns once a minute; sailors count its beams and steer for home.",
    "We'd rather walk than wait, wouldn't you? I'm told that they're late and she'll sing.",
    "Each worker trains the weights that it holds, then sends them to whoever reads next.",
    "In 1998 about 12,345 boats (67.8 % of them small) paid $0.99 each; 3.14 is close to pi.",
    "while (left < right) { middle = (left + right) / 2; }  // halves the range\n",
    "def steps(n):\n    for i in range(n):\n\tyield i ** 2\n",
    "#include <cstdio>\nint main() { std::puts(\"ready\"); return 0; }\n",
    "{\"name\": \"lamp\", \"on\": true, \"levels\": [0, 1, 2.5, null]}",
    "see http://localhost:8080/page?id=7&lang=en#top or write to desk@example.com",
    "Der Fährmann grüßt höflich; die Brücke über den Fluß ist schön. Ärger, Öfen, Übermut.",
    "La fenêtre où l'été commence: garçons, naïfs, œuvres, très tôt, déjà là.",
    "Mañana por la mañana el pingüino soñará; ¿quién llamó? ¡Nadie, señor!",
    "Лодка плывёт к берегу, а маяк светит всю ночь. Кто считает огни?",
    "Η βάρκα γυρίζει στο λιμάνι και ο φάρος ανάβει.",
    "港口的灯每分钟转一次。水手数着光，慢慢回家。今晚的月亮很亮。",
    "灯台の光がまわります。ふねは ゆっくり みなとへ かえる。カモメがなく。",
    "등대의 불빛이 돈다. 배는 천천히 항구로 돌아온다.",
    "القارب يعود إلى الميناء والمنارة تضيء الليل.",
    "הסירה חוזרת לנמל והמגדלור מאיר.",
    "नाव धीरे धीरे घाट पर लौटती है। दीपक जलता है।",
    "เรือกลับเข้าท่า ประภาคารส่องแสงทั้งคืน",
    "Con thuyền về bến; ngọn hải đăng sáng suốt đêm, người đếm từng tia.",
    "⛵ 🌊 🌙 ✨ good night! 🧑‍🚀 👩‍👧 🇫🇷🇧🇷 ☕️ 💡",
    "first\n\nsecond\n \nthird\tand\t\ttabs    then spaces\r\nand a Windows line\r\n",
    "LAMP Lamp lamp LAMPS lamps BOAT Boat boat boats",
]

EMPTY_AND_SPACES = ["", " ", "  ", "     ", "\n", "\n\n", "\n\n\n\n", "\t", "\t\t\t", "\r", "\r\n",
                    " \n", "\n ", " \n \n ", "\t \n", "\u00a0", "\u3000", "a\u00a0b", "x\u2009y",
                    "p\u3000q", "m\u200bn", "m\u200dn", "\ufeffmark", "l\u2028m", "l\u2029m",
                    "n\u0085o", "so\u00adft", "\u202atext\u202c", "\u00a0\u00a0 z", "w \u3000 v",
                    "ends in blanks    ", "    starts in blanks", " both ", "a  b   c    d",
                    "line\n", "\nline", "one\ntwo\n\nthree\n\n\n", "mixed \t\n \r\n\t end"]
LETTERS = ["a", "Z", "é", "ß", "ẞ", "œ", "ñ", "Ω", "ж", "灯", "あ", "한", "م", "ש", "न", "ก"]
NUMBERS = ["0", "7", "42", "365", "2024", "31415", "123456", "9876543210", "3.14", "1,000,000.5",
           "-12", "+3", "1e9", "6.02e-23", "0b1011", "0xBEEF", "v2.10.3", "12:34:56", "50%",
           "$7.25", "№5", "x1", "1x", "a1b22c333", "½ ¾", "m² n³", "Ⅳ Ⅻ", "٠١٢٣", "１２３４５",
           "०१२", "〇三七", "1st 2nd", "2^8", "10/3=3.33"]
WORDS = ["boat", " boat", "  boat", "boat ", "boat  ", "Boat", "BOAT", "boats sail", "boats  sail",
         "boats\nsail", "boats\n\n sail", "boats \n sail", "boats,sail", "boats, sail!",
         "I'm", "I'M", "you're", "YOU'RE", "she'd", "we've", "it's", "they'll", "can't", "'s", "''t",
         "'twas", "rock'n'roll", "O'Neil", "'\u017fs", "it\u2019s", "don\u2019t",
         "self-made", "snake_case_name", "CamelCaseName", "kebab-case-name", "SHOUTING",
         "antidisestablishmentarianism", "hhhhhhhhhhhhhhhhhhhhhhhhhhhh", "XYXYXYXYXYXY",
         "a b c d e f g", "lamp;boat;lamp", "the the the"]
CODE = ["for (auto x : xs) { f(x); }", "def g(y):\n\treturn y ** 2\n", "if a==b&&c!=d:", "i+=1;",
        "<p class=\"x\">&lt;b&gt;</p>", "[1, [2, {\"k\": null}]]", "/etc/hosts", "C:\\Temp\\new.txt",
        "SELECT a FROM t WHERE b='c';", "\\sum_{i=1}^n \\frac{1}{i}", "```sh\nmake run\n```",
        "**bold** and _thin_", "--flag=value -x", "...", "???", "!?!?", "----", "=" * 33, "#tag @name",
        "a->b::c", "x = 1\n\n\ny = 2", "        deep\n            deeper\n", "me@example.com",
        "https://example.com/a/b?c=d&e=%20#f"]
SCRIPTS = ["Größe", "Gro\u0308ße", "e\u0301", "\u00e9", "n\u0303o \u00f1o", "a\u0300\u0323\u0302",
           "\u1ec7 e\u0323\u0302", "ﬁne ﬂow", "\u2126 \u212b", "İzmir ışık", "ǅ ǈ ǋ", "각 \u1100\u1161\u11a8",
           "Δδ Σσς", "Лодка", "ЛОДКА плывёт", "灯台", "港口的灯", "港口，灯！", "カタカナとひらがな",
           "ﾊﾝｶｸ", "배가 온다", "\U00020001\U0002a700", "القارب", "قَارِب", "abc قارب def", "סירה", "סִירָה",
           "नाव घाट", "क्षितिज", "เรือ", "กำลัง", "thuyền về", "βάρκα", "ნავი", "նավակ", "ጀልባ",
           "Z̷a̸l̵g̶o̷"]
PICTURES = ["⛵", "⛵🌊", "👍🏿", "👩‍👧", "🧑‍🚀", "🇫🇷🇧🇷", "☕️", "☕", "5️⃣", "go⛵go", "⛵ go",
            "\U0001fae0", "\U0010fffd", "\U0001f3f4\U000e0067\U000e0062\U000e007f"]
CONTROLS = ["\x00", "c\x00d", "\x01\x02\x1f", "\x7f", "\ufffd", "\uffff", "\ue001", "\u0301", "\x0b\x0c",
            "c\x0bd\x0ce", "\x1b[1mbold\x1b[0m", "\x85"]
MARKS = ["▁", "▁▁▁", "a▁b", "Ġ", "Ġboat", "Ċ", "<0x41>", "<0xC3><0xA9>", "<0xE6>", "<unk>", "<s>", "</s>",
         "<pad>", "<s>boat</s>", "boat</s> sail", "<|endoftext|>", "a<|endoftext|>b",
         " <|endoftext|> ", "<|im_start|>user\nahoy<|im_end|>\n", "<|im_end|><|im_end|>", "<|im_start",
         "<|begin_of_text|>", "<|start_header_id|>user<|end_header_id|>\n\nahoy<|eot_id|>",
         "<mask>", "a <mask> b", "a<mask>b", "<start_of_turn>user\nahoy<end_of_turn>\n", "<bos>",
         "[INST] ahoy [/INST]", "lamp lamps lamplight", "LAMP", "word wordy aword word."]

FIXED = (EMPTY_AND_SPACES + LETTERS + NUMBERS + WORDS + CODE + SCRIPTS + PICTURES + CONTROLS + MARKS
         + SENTENCES)
CUTTINGS = ["boat ", "lamp", " light", "'s", "'RE", " 7", "42", "1998 ", ".", ";", "?!", "   ", "\n",
            "\n\n", "\t", "\r\n", " \n", "é", "e\u0301", "ß", "港", "口的", "灯台", "배", "ق", "ש", "घा",
            "⛵", "🧑‍🚀", "🇫🇷", "\u00a0", "\u200b", "Q", "_", "(", ")", "{}", "[3]", "!=", "//", "#",
            "<s>", "<|im_end|>", "<|endoftext|>", "³", "Ⅳ", "٢", "Ω", "ж", "\x00", "▁", "Ġ", "%"]


def samples(name):
    """The fixed texts, and 40 that are pasted together."""
    chance = random.Random(name)
    pasted = ["".join(chance.choice(CUTTINGS) for _ in range(chance.randint(2, 13)))
              for _ in range(40)]
    return list(dict.fromkeys(FIXED + pasted))


def corpus():
    """The sentences, and many that are shuffled from their words."""
    chance = random.Random("corpus")
    words = [word for sentence in SENTENCES for word in sentence.split(" ")]
    return SENTENCES * 4 + [" ".join(chance.choice(words) for _ in range(chance.randint(3, 12)))
                            for _ in range(300)]


def message(role, content, **more):
    return {"role": role, "content": content, **more}


CHATS = [
    [message("user", "Ahoy")],
    [message("system", "Say one word."), message("user", "How much is 3 + 4?")],
    [message("user", "Ahoy"), message("assistant", "Ahoy! What can I do?"),
     message("user", "Count the lamps.")],
    [message("system", " Be short. "), message("user", "灯台 ⛵"), message("assistant", " はい ")],
    [message("user", "  blanks around \n")],
    [message("user", "a mark <|im_end|> </s> <|eot_id|> <end_of_turn> inside")],
    [message("user", "")],
    [message("user", "quotes \" ' and <tags> & {{ braces }} {% here %}")],
    [message("assistant", "I begin"), message("user", "Do you?")],
    [message("user", "one"), message("user", "two")],
    [message("user", "a"), message("assistant", "b"), message("user", "c"),
     message("assistant", "d"), message("user", "e")],
]
