import type { Page } from 'playwright-core'
import { getDocumentProxy } from 'unpdf'

export type Sheet = {
  /** Everything on it, without white space. */
  text: string
  /** Words beyond its edges. */
  cut: string[]
}

/** What stands on each sheet when the browser prints this page: the PDF is read back. */
export const sheetsOf = async (page: Page): Promise<Sheet[]> => {
  await page.emulateMedia({ media: 'print' })
  const pdf = await getDocumentProxy(new Uint8Array(await page.pdf({ preferCSSPageSize: true })))
  await page.emulateMedia({ media: null })
  const sheetOf = async (number: number): Promise<Sheet> => {
    const sheet = await pdf.getPage(number)
    const [left = 0, bottom = 0, right = 0, top = 0] = sheet.view
    const { items } = await sheet.getTextContent()
    const words = items.filter((item) => 'str' in item)
    return {
      text: words
        .map(({ str }) => str)
        .join('')
        .replaceAll(/\s/g, ''),
      cut: words.flatMap(({ str, transform: [, , , , x, y], width, height }) =>
        x >= left && x + width <= right && y >= bottom && y + height <= top ? [] : [str],
      ),
    }
  }
  const sheets: Sheet[] = []
  while (sheets.length < pdf.numPages) sheets.push(await sheetOf(sheets.length + 1))
  return sheets
}
