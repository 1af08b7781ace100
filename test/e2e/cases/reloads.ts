import { expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import { PATIENCE_MS, sitDown } from '../desk.ts'

it(
  'a page that a person reloads twenty times in a minute is drawn each time; later the limit is stated with its end',
  async () => {
    const { context, page } = await sitDown('olga')
    const answers: number[] = []
    page.on('response', (answer) => {
      if (answer.url().includes('/v1/token?') && answer.request().method() === 'POST') answers.push(answer.status())
    })
    const inbox = page.getByRole('heading', { level: 1, name: 'Inbox' })
    for (let n = 0; n < 20; n++) {
      await page.reload()
      await inbox.waitFor()
    }
    expect(answers).toEqual(Array.from({ length: 20 }, () => 200))

    // Without a pause: sooner or later one is refused, and the page comes back without the person.
    const limited = page.getByRole('heading', { level: 1, name: 'Too many pages were opened in a short time' })
    for (let n = 0; n < 60 && !answers.includes(429); n++) {
      const before = answers.length
      await page.reload({ waitUntil: 'commit' })
      await until(() => answers.length > before, { what: 'the answer to a refresh' })
    }
    expect(answers).toContain(429)
    await limited.waitFor()
    await inbox.waitFor()
    await context.close()
  },
  PATIENCE_MS,
)
