CREATE TABLE IF NOT EXISTS "credential"."totp_ended" (
	"user_id" uuid NOT NULL,
	"setup_id" uuid NOT NULL,
	"ended_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "totp_ended_user_id_setup_id_pk" PRIMARY KEY("user_id","setup_id")
);
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "totp_ended_ended_at_index" ON "credential"."totp_ended" USING btree ("ended_at");
