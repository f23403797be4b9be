// Commands as they are written, and what is refused before it is sent.

package weekwheel

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Bytes of a line without its end: of beanstalkd's put, and of weekwheeld's own verbs.
const lineMost, ownLineMost = 222, 2046

// The server's bounds of a length of time, of a time of the wall clock, and of an error, in seconds and bytes.
const spanMost, momentMost, reasonMost = math.MaxUint32, 4611686018, 255

// Letters of the name of a tube, beside those of all words.
const tubeLetters = "+/;.$_()-"

func isPlain(letter byte) bool {
	return letter >= 'A' && letter <= 'Z' || letter >= 'a' && letter <= 'z' || letter >= '0' && letter <= '9'
}

// words builds a command. The first wrong argument makes it an error: nothing is sent then.
type words struct {
	line strings.Builder
	err  error
}

func command(verb string) *words {
	w := &words{}
	w.line.WriteString(verb)
	return w
}

func (w *words) refuse(format string, values ...any) *words {
	if w.err == nil {
		w.err = invalid(format, values...)
	}
	return w
}

func (w *words) text(word string) *words {
	w.line.WriteByte(' ')
	w.line.WriteString(word)
	return w
}

func (w *words) number(number uint64) *words { return w.text(strconv.FormatUint(number, 10)) }

func (w *words) tube(tube string) *words {
	if err := checkTube(tube); err != nil && w.err == nil {
		w.err = err
	}
	return w.text(tube)
}

// key writes a key or a name, percent-encoded. - alone would be none.
func (w *words) key(key string) *words {
	if key == "" || len(key) > 200 {
		return w.refuse("%q: a key or a name has 1 to 200 bytes", key)
	}
	return w.text(escape(key))
}

func (w *words) priority(priority Priority) *words {
	switch {
	case priority == 0:
		priority = DefaultPriority
	case priority == MostUrgent:
		priority = 0
	case priority < 0 || priority > math.MaxUint32:
		return w.refuse("the priority %d is out of range: 1 to %d, or MostUrgent", priority, uint32(math.MaxUint32))
	}
	return w.number(uint64(priority))
}

func (w *words) span(span time.Duration) *words { return w.text(w.seconds(span)) }

// whole writes seconds, rounded up: beanstalkd's verbs have no others.
func (w *words) whole(span time.Duration) *words {
	if w.seconds(span); w.err != nil {
		return w
	}
	return w.number(uint64(span/time.Second) + b2u(span%time.Second > 0))
}

func (w *words) moment(at time.Time) *words { return w.text(w.since(at)) }

// Options: what has its zero value is not said.

func (w *words) optional(name, value string) *words {
	if value == "" {
		return w
	}
	return w.text(name + "=" + value)
}

func (w *words) optionalSpan(name string, span time.Duration) *words {
	if span == 0 {
		return w
	}
	return w.optional(name, w.seconds(span))
}

func (w *words) optionalNumber(name string, number uint64) *words {
	if number == 0 {
		return w
	}
	return w.optional(name, strconv.FormatUint(number, 10))
}

func (w *words) optionalTime(name string, at time.Time) *words {
	if at.IsZero() {
		return w
	}
	return w.optional(name, w.since(at))
}

func (w *words) optionalText(name, text string) *words { return w.optional(name, escape(text)) }

func (w *words) optionalTube(tube string) *words {
	if tube == "" {
		return w
	}
	if err := checkTube(tube); err != nil && w.err == nil {
		w.err = err
	}
	return w.optional("tube", tube)
}

var headerForm = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9a-z-]+: (?:[!-~](?:[ -~]*[!-~])?)?$")

// headers says how many bytes of what follows are headers, and returns them: lines, which stand before the body.
func (w *words) headers(headers map[string]string) []byte {
	var lines []byte
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		line := strings.ToLower(name) + ": " + headers[name]
		if !headerForm.MatchString(line) {
			w.refuse("the header %q: its name is a token of HTTP, and its value visible ASCII", line)
		}
		lines = append(append(lines, line...), '\n')
	}
	w.optionalNumber("headers", uint64(len(lines)))
	return lines
}

// then says how many bytes of what follows are the follow-up, and returns them: they stand between headers and body.
func (w *words) then(job any) []byte {
	if job == nil {
		return nil
	}
	text, err := json.Marshal(job)
	if err != nil {
		w.refuse("Then: %v", err)
	}
	w.optionalNumber("then", uint64(len(text)))
	return text
}

// optionalWord is for the words that a mode has.
func (w *words) optionalWord(name, word string) *words {
	for i := 0; i < len(word); i++ {
		if !isPlain(word[i]) && word[i] != '-' && word[i] != ',' {
			return w.refuse("%s: %q is not a word", name, word)
		}
	}
	return w.optional(name, word)
}

func (w *words) yes(name string, is bool) *words {
	if !is {
		return w
	}
	return w.optional(name, "yes")
}

func (w *words) seconds(span time.Duration) string {
	if span < 0 || span/time.Second > spanMost {
		w.refuse("%v is out of range: 0 to %d s", span, uint32(spanMost))
		return "0"
	}
	return decimal(int64(span/time.Second), int64(span%time.Second))
}

func (w *words) since(at time.Time) string {
	if at.Unix() < 0 || at.Unix() >= momentMost {
		w.refuse("%v is out of range: 1970 to %d s later", at, int64(momentMost))
		return "0"
	}
	return decimal(at.Unix(), int64(at.Nanosecond()))
}

// sent returns the line with its end. What a server would read otherwise, or not at all, is refused here: it would take what
// comes behind it, such as a body, for commands.
func (w *words) sent() ([]byte, error) {
	line := w.line.String()
	most := ownLineMost
	if strings.HasPrefix(line, "put ") {
		most = lineMost
	}
	if len(line) > most {
		w.refuse("%.40s... has %d bytes, and a server reads %d: make the key, the group and the like shorter", line, len(line), most)
	}
	for i := 0; i < len(line); i++ {
		if line[i] < ' ' || line[i] > '~' {
			w.refuse("%q has a character that no command has", line)
		}
	}
	return []byte(line + "\r\n"), w.err
}

func decimal(whole, nanoseconds int64) string {
	if nanoseconds == 0 {
		return strconv.FormatInt(whole, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%09d", whole, nanoseconds), "0")
}

// checkTube refuses what is not the name of a tube: what comes behind it would go to another tube.
func checkTube(tube string) error {
	isGood := tube != "" && len(tube) <= 200 && tube[0] != '-'
	for i := 0; i < len(tube); i++ {
		isGood = isGood && (isPlain(tube[i]) || strings.IndexByte(tubeLetters, tube[i]) >= 0)
	}
	if !isGood {
		return invalid("%q is not a name of a tube: 1 to 200 of A-Z a-z 0-9 %s, without - in front", tube, tubeLetters)
	}
	return nil
}

// escape percent-encodes each byte that is not a letter, a digit or one of _.~-
func escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if isPlain(text[i]) || strings.IndexByte("_.~", text[i]) >= 0 || (text[i] == '-' && len(text) > 1) {
			b.WriteByte(text[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", text[i])
		}
	}
	return b.String()
}

// reason writes an error for people; - is none.
func (w *words) reason(text string) *words {
	text = strings.ReplaceAll(text, "\x00", " ")
	if len(text) > reasonMost {
		text = strings.ToValidUTF8(text[:reasonMost], "")
	}
	if text == "" {
		return w.text("-")
	}
	return w.text(escape(text))
}

func b2u(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
