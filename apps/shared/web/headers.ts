/** Headers of the connection. `host` chooses the site behind a shared address, so it would pass the list of allowed ones. */
const OF_CONNECTION =
  /^(?:host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|http2-settings|proxy-.*|:.*)$/i

/** Whether a step or a target must not set this header, because the URL and the client decide it. */
export const isConnectionHeader = (name: string): boolean => OF_CONNECTION.test(name.trim())

export const connectionHeader = (name: string): string =>
  `must not set "${name}": the address and the connection decide this header`
