/** Answers kept; beyond that all are forgotten at once, which costs a moment's evaluations. */
const MAX_KEPT = 5000

/** The seconds that the policies compare the age of a login with; undefined where they use it in any other way. */
const ageSteps = (policies: readonly string[]): number[] | undefined => {
  const text = policies.join('\n')
  const steps = [...text.matchAll(/\bcontext\.auth_age_s\s*>\s*(\d+)(?=\s*(?:[})]|&&|\|\|))/g)]
  return steps.length === text.split('auth_age_s').length - 1 ? steps.map(([, seconds]) => Number(seconds)) : undefined
}

/**
 * Asks policies each question once: an answer depends on the request alone, and one page asks the same few
 * questions again and again. Ages of a login count as equal as long as no policy tells them apart.
 */
export const rememberAnswers = <R extends { auth_age_s: number }, A>(
  policies: readonly string[],
  ask: (request: R) => A,
): ((request: R) => A) => {
  const steps = ageSteps(policies)
  const kept = new Map<string, A>()
  return (request) => {
    const seconds = Math.max(0, Math.floor(request.auth_age_s))
    const age = steps ? steps.filter((step) => seconds > step).length : seconds
    const key = JSON.stringify({ ...request, auth_age_s: age })
    const known = kept.get(key)
    if (known !== undefined || kept.has(key)) return known as A
    const answer = ask(request)
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(key, answer)
    return answer
  }
}
