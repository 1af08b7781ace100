/** The environment of this console, as the gateway wrote it into the page. */
const meta = (name: string): string =>
  document.querySelector<HTMLMetaElement>(`meta[name="signalbox-${name}"]`)?.content ?? ''

export type Tier = 'dev' | 'test' | 'prod'

const tier = meta('tier')

export const environment = {
  name: meta('environment') || 'local',
  tier: (tier === 'prod' || tier === 'test' ? tier : 'dev') as Tier,
  version: meta('version'),
}
