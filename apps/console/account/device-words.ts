/** The browser's name and version by its user agent's tokens, most specific first: others contain those after them. */
const BROWSERS: [RegExp, string][] = [
  [/\bEdg(?:e|A|iOS)?\/(\d+)/, 'Edge'],
  [/\bOPR\/(\d+)/, 'Opera'],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, 'Firefox'],
  [/\b(?:HeadlessChrome|Chrome|CriOS)\/(\d+)/, 'Chrome'],
  [/\bVersion\/(\d+)[\d.]* (?:Mobile\/\w+ )?Safari\//, 'Safari'],
]
const SYSTEMS: [RegExp, string][] = [
  [/\bWindows\b/, 'Windows'],
  [/\b(?:iPhone|iPod)\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
]

/**
 * Describes a user agent: `Firefox 130 on Linux`. The client chooses it, so no decision depends on it. An unknown
 * client is shown by its first word, `curl 8.5.0`. System versions are left out, because browsers freeze them.
 */
export const deviceWords = (
  user_agent: string | null,
  on: (browser: string, system: string) => string,
): string | null => {
  if (user_agent === null || user_agent.trim() === '') return null
  for (const [pattern, name] of BROWSERS) {
    const version = pattern.exec(user_agent)?.[1]
    if (version === undefined) continue
    const system = SYSTEMS.find(([words]) => words.test(user_agent))?.[1]
    return system === undefined ? `${name} ${version}` : on(`${name} ${version}`, system)
  }
  return user_agent.trim().split(/\s/)[0]?.replace('/', ' ') ?? null
}
