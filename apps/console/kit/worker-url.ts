type Policy = { createScriptURL: (url: string) => unknown }
type Factory = { createPolicy: (name: string, rules: { createScriptURL: (url: string) => string }) => Policy }

const check = (url: string): string => {
  const whole = new URL(url, location.href)
  // The development server serves workers from other paths; there the browser enforces no policy.
  const ours =
    whole.origin === location.origin &&
    (import.meta.env.DEV || whole.pathname.startsWith('/assets/') || whole.href === `${location.origin}/sw.js`)
  if (!ours) throw new TypeError(`a worker may be /sw.js or below /assets/ of this origin, not from ${whole.href}`)
  return whole.href
}

const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes
const policy: Policy = factory?.createPolicy('signalbox-worker', { createScriptURL: check }) ?? {
  createScriptURL: check,
}

/** The console's only Trusted Types policy: a worker's URL of this origin, below /assets/, and exactly /sw.js. */
export const workerUrl = (url: string): string => policy.createScriptURL(url) as string
