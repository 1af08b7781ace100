import Anser from 'anser'

export type Run = { text: string; className: string }

const ESCAPE = '\u001b'
const BELL = '\u0007'
/** Bidirectional controls and other invisible marks that can disguise text. */
const HIDDEN = /[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g
const OSC = new RegExp(`(?:${ESCAPE}\\]|\u009d)[^${BELL}${ESCAPE}\u009c]*(?:${BELL}|${ESCAPE}\\\\|\u009c|$)`, 'g')
const STRINGS = new RegExp(`${ESCAPE}[PX^_][^${ESCAPE}]*(?:${ESCAPE}\\\\|$)`, 'g')
const CSI = new RegExp(`(?:${ESCAPE}\\[|\u009b)([0-?]*)[ -/]*([@-~])`, 'g')
const SHORT = new RegExp(`${ESCAPE}[ -/]*[0-Z\\\\^-~]`, 'g')

/** A log line as text with classes for its ANSI colors. Drops other escapes, links, cursor moves, hidden controls. */
export const runsOf = (line: string): Run[] => {
  const colours = line
    .replace(OSC, '')
    .replace(STRINGS, '')
    .replace(CSI, (sequence, parameters: string, final: string) =>
      final === 'm' && /^[0-9;]*$/.test(parameters) ? `${ESCAPE}[${parameters}m` : sequence.slice(0, 0),
    )
  if (!colours.includes(`${ESCAPE}[`)) return [{ text: plain(colours), className: '' }]
  return Anser.ansiToJson(colours, { use_classes: true, remove_empty: true })
    .map((entry) => ({ text: plain(entry.content), className: classOf(entry) }))
    .filter((run) => run.text !== '')
}

const plain = (text: string): string => dropControls(text.replace(SHORT, '').replace(HIDDEN, ''))

/** Removes control characters except the tab, because none of them is text. */
const dropControls = (text: string): string => {
  let kept = ''
  for (const letter of text) {
    const code = letter.codePointAt(0) ?? 0
    if (code === 9 || (code >= 32 && (code < 127 || code > 159))) kept += letter
  }
  return kept
}

const COLOURS = new Set(['red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'black', 'white'])

function classOf({ fg, decorations }: { fg: string | null; decorations: string[] }): string {
  const colour = fg?.replace(/^ansi-(bright-)?/, '') ?? ''
  return [
    COLOURS.has(colour) ? `ansi-${colour}` : '',
    decorations.includes('bold') ? 'ansi-bold' : '',
    decorations.includes('underline') ? 'ansi-underline' : '',
  ]
    .filter((name) => name !== '')
    .join(' ')
}
